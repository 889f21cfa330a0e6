// go get golang.org/x/oauth2
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"

	"golang.org/x/oauth2"
)

const root = "{{root}}"

func main() {
	ctx := context.Background()
	config := &oauth2.Config{
		ClientID:     os.Getenv("CLIENT_ID"),
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		RedirectURL:  "https://app.example/callback",
		Scopes:       []string{"reviews:read"},
		Endpoint:     oauth2.Endpoint{AuthURL: root + "/oauth/authorize", TokenURL: root + "/oauth/token"},
	}

	// Send the browser to this URL, and store the state and the verifier in the user's session.
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	fmt.Println(config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))

	// Read the URL to which the browser was redirected.
	var line string
	fmt.Scanln(&line)
	answer, err := url.Parse(line)
	check(err)
	query := answer.Query()
	if query.Get("state") != state || query.Get("iss") != root {
		log.Fatal("The answer is not to this question.")
	}
	first, err := config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(verifier))
	check(err)

	// A token source refreshes when the access token is about to expire. This source starts without an access token.
	source := config.TokenSource(ctx, &oauth2.Token{RefreshToken: first.RefreshToken})
	token, err := source.Token()
	check(err)
	client := oauth2.NewClient(ctx, source)
	response, err := client.Get(root + "/api/v1/verify-token")
	check(err)
	var me struct{ User struct{ Email string } }
	check(json.NewDecoder(response.Body).Decode(&me))
	fmt.Println(me.User.Email)

	// The package has no function to revoke a token.
	form := url.Values{"token": {token.RefreshToken}, "client_id": {config.ClientID}, "client_secret": {config.ClientSecret}}
	_, err = http.PostForm(root+"/oauth/revoke", form)
	check(err)
	response, err = client.Get(root + "/api/v1/verify-token")
	check(err)
	fmt.Println(response.StatusCode)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
