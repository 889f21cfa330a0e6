package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// IsSigned reports whether body, exactly as received, was signed with secret. Give it the headers X-SVC-Signature and
// X-SVC-Signature-Previous, empty if there are none.
func IsSigned(secret string, body []byte, signatures ...string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
	for _, given := range signatures {
		if hmac.Equal(expected, []byte(given)) {
			return true
		}
	}
	return false
}
