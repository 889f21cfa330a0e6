package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// IsSigned reports whether body, byte for byte as it arrived, was signed with secret; signature is the header
// X-SVC-Signature, empty if there is none.
func IsSigned(secret string, body []byte, signature string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	expected := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(expected), []byte(signature))
}

// go run verify.go <secret> <signature> < body
func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil || !IsSigned(os.Args[1], body, os.Args[2]) {
		os.Exit(1)
	}
}
