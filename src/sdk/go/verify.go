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

// ErrSignature says that no signature of a delivery fits a secret. Answer it with 401.
var ErrSignature = errors.New("reviewrelay: no signature fits a secret")

// ErrTooOld says that a delivery is older than the tolerance. Answer it with 401.
var ErrTooOld = errors.New("reviewrelay: the delivery is too old, or the clock is wrong")

// Verifier verifies the deliveries of a subscription.
type Verifier struct {
	// Secrets are those that you hold, which are two during a rotation. They may have the form whsec_… of Standard Webhooks.
	Secrets []string
	// Tolerance is how far the time of a delivery may be from the clock; five minutes if it is zero.
	Tolerance time.Duration
	// Now returns the current time; time.Now if it is nil.
	Now func() time.Time
}

// Verify returns the event of a delivery. body is the raw body as it arrived. The age of a minimal body is checked only if
// the subscription has standard_webhooks, because the body has no time.
func (v Verifier) Verify(body []byte, header http.Header) (*Event, error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	if signatures := header.Get("webhook-signature"); id != "" && timestamp != "" && signatures != "" {
		signed := append([]byte(id+"."+timestamp+"."), body...)
		sign := func(digest []byte) string { return "v1," + base64.StdEncoding.EncodeToString(digest) }
		if err := v.match(strings.Split(signatures, " "), signed, sign); err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil || !v.isRecent(time.Unix(seconds, 0)) {
			return nil, ErrTooOld
		}
	} else {
		given := []string{header.Get("X-SVC-Signature"), header.Get("X-SVC-Signature-Previous")}
		sign := func(digest []byte) string { return "sha256=" + hex.EncodeToString(digest) }
		if err := v.match(given, body, sign); err != nil {
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

// match returns nil if one of the given signatures is that of a secret.
func (v Verifier) match(given []string, signed []byte, sign func([]byte) string) error {
	for _, secret := range v.Secrets {
		key, err := keyOf(secret)
		if err != nil {
			return err
		}
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

// keyOf returns the key of a secret. whsec_… is the base64 of the plain secret.
func keyOf(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("reviewrelay: a secret is empty")
	}
	if encoded, found := strings.CutPrefix(secret, "whsec_"); found {
		return base64.StdEncoding.DecodeString(encoded)
	}
	return []byte(secret), nil
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
