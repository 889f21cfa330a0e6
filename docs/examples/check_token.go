// go get github.com/golang-jwt/jwt/v5 github.com/MicahParks/keyfunc/v3
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

var (
	root   = os.Getenv("REVIEWRELAY")      // SERVER_ROOT of ReviewRelay, such as https://reviews.example
	scopes = []string{"*", "reviews:read"} // one of these opens your route
	client = http.Client{Timeout: 5 * time.Second}
	parser = jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(root),
		jwt.WithAudience(root+"/api"), jwt.WithExpirationRequired())
)

type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope"`
}

// checkByKeys answers the id of the user without asking. A revoked token passes until it expires.
func checkByKeys(keys keyfunc.Keyfunc, token string) (string, error) {
	var c claims
	parsed, err := parser.ParseWithClaims(token, &c, keys.Keyfunc)
	if err != nil {
		return "", err
	}
	if parsed.Header["typ"] != "at+jwt" || !opens(c.Scope) {
		return "", errors.New("the token is of another type, or lacks the scope")
	}
	return c.Subject, nil
}

// introspect asks ReviewRelay, which refuses a revoked token at once.
func introspect(token string) (string, error) {
	body, _ := json.Marshal(map[string]string{"token": token})
	request, _ := http.NewRequest("POST", root+"/api/v1/platform/introspect", bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("SERVICE_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var told struct {
		Active bool   `json:"active"`
		Scope  string `json:"scope"`
		UserID int    `json:"user_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&told); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK || !told.Active || !opens(told.Scope) {
		return "", fmt.Errorf("the token is not valid here (%d)", response.StatusCode)
	}
	return fmt.Sprint(told.UserID), nil
}

func opens(scope string) bool {
	return slices.ContainsFunc(strings.Fields(scope), func(one string) bool { return slices.Contains(scopes, one) })
}

// go run check_token.go < tokens, one a line
func main() {
	keys, err := keyfunc.NewDefaultCtx(context.Background(), []string{root + "/.well-known/jwks.json"})
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(shown(checkByKeys(keys, lines.Text())), shown(introspect(lines.Text())))
	}
}

func shown(user string, err error) string {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return "-"
	}
	return user
}
