# pip install requests-oauthlib
import os
from urllib.parse import parse_qs, urlsplit

import requests
from requests_oauthlib import OAuth2Session

ROOT = "{{root}}"
credentials = (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
session = OAuth2Session(
    credentials[0],
    redirect_uri="https://app.example/callback",
    scope=["reviews:read"],
    pkce="S256",
)

# Send the browser to this URL. The OAuth session has created state and verifier: store it in the user's session.
url, _ = session.authorization_url(f"{ROOT}/oauth/authorize")
print(url, flush=True)

# Read the URL to which the browser was redirected.
answer = input()
if parse_qs(urlsplit(answer).query).get("iss") != [ROOT]:
    raise SystemExit("The answer is another server's.")
session.fetch_token(
    f"{ROOT}/oauth/token", authorization_response=answer, client_secret=credentials[1]
)

tokens = session.refresh_token(f"{ROOT}/oauth/token", auth=credentials)
print(session.get(f"{ROOT}/api/v1/verify-token").json()["user"]["email"])
requests.post(f"{ROOT}/oauth/revoke", auth=credentials, data={"token": tokens["refresh_token"]})
print(session.get(f"{ROOT}/api/v1/verify-token").status_code)
