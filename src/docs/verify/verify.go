package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// IsSigned reports whether body, exactly as received, was signed with secret; signature is the header X-SVC-Signature,
// empty if there is none.
func IsSigned(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}
