package reviewrelay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrSignature reports that no signature of a delivery matches a secret. Respond with status 401.
var ErrSignature = errors.New("reviewrelay: no signature fits a secret")

// ErrTooOld reports that the time of a delivery differs from the clock by more than the tolerance. Respond with status
// 401.
var ErrTooOld = errors.New("reviewrelay: the delivery is too old, or the clock is wrong")

// Verifier verifies the deliveries of a subscription.
type Verifier struct {
	// Secrets are the current secrets of the subscription; there are two during a rotation. They may have the form whsec_…
	// of Standard Webhooks.
	Secrets []string
	// Tolerance is the maximum difference between the time of a delivery and the clock. Zero means five minutes.
	Tolerance time.Duration
	// Now returns the current time. Nil means time.Now.
	Now func() time.Time
}

// Verify returns the event of a delivery. body is the raw body as received. The age of a minimal body is checked only
// if the subscription has standard_webhooks, because the body contains no time.
func (v Verifier) Verify(body []byte, header http.Header) (*Event, error) {
	keys, plain, err := v.keys()
	if err != nil {
		return nil, err
	}
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	if signatures := header.Get("webhook-signature"); id != "" && timestamp != "" && signatures != "" {
		signed := append([]byte(id+"."+timestamp+"."), body...)
		sign := func(digest []byte) string { return "v1," + base64.StdEncoding.EncodeToString(digest) }
		if err := match(keys, strings.Split(signatures, " "), signed, sign); err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil || !v.isRecent(time.Unix(seconds, 0)) {
			return nil, ErrTooOld
		}
	} else {
		// A secret in the form whsec_ requires the headers above. A replayed delivery could omit them, because they contain
		// the time.
		given := []string{header.Get("X-SVC-Signature"), header.Get("X-SVC-Signature-Previous")}
		sign := func(digest []byte) string { return "sha256=" + hex.EncodeToString(digest) }
		if err := match(plain, given, body, sign); err != nil {
			return nil, err
		}
	}
	var event Event
	if err := json.Unmarshal(body, &event); err != nil {
		return nil, err
	}
	if event.DeliveredAt != nil && !v.isRecent(*event.DeliveredAt) {
		return nil, ErrTooOld
	}
	return &event, nil
}

// keys returns the keys of all secrets, and separately those of the secrets without the form whsec_….
func (v Verifier) keys() (all, plain [][]byte, err error) {
	for _, secret := range v.Secrets {
		key, err := keyOf(secret)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, key)
		if !strings.HasPrefix(secret, standard) {
			plain = append(plain, key)
		}
	}
	return all, plain, nil
}

// match returns nil if one of the given signatures was made with one of the keys.
func match(keys [][]byte, given []string, signed []byte, sign func([]byte) string) error {
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		expected := []byte(sign(mac.Sum(nil)))
		for _, one := range given {
			if hmac.Equal([]byte(one), expected) {
				return nil
			}
		}
	}
	return ErrSignature
}

const standard = "whsec_"

// leastBytes is the minimum length in bytes of a key in the form whsec_…: the shortest secret that a subscription can have.
const leastBytes = 8

// keyOf returns the key of a secret. After whsec_ follows the base64 of the plain secret.
func keyOf(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("reviewrelay: a secret is empty")
	}
	encoded, found := strings.CutPrefix(secret, standard)
	if !found {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	// The decoder ignores line breaks, so the key is encoded again and compared.
	if err != nil || base64.StdEncoding.EncodeToString(key) != encoded || len(key) < leastBytes {
		return nil, errors.New("reviewrelay: a secret is not whsec_ and the base64 of at least 8 bytes")
	}
	return key, nil
}

func (v Verifier) isRecent(at time.Time) bool {
	now, tolerance := time.Now(), v.Tolerance
	if v.Now != nil {
		now = v.Now()
	}
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	return now.Sub(at).Abs() <= tolerance
}
