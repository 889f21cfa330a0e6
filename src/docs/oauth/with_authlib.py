# pip install authlib requests
import os
from urllib.parse import parse_qs, urlsplit

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

ROOT = "{{root}}"
session = OAuth2Session(
    os.environ["CLIENT_ID"],
    os.environ["CLIENT_SECRET"],
    redirect_uri="https://app.example/callback",
    scope="reviews:read",
    code_challenge_method="S256",
)

# Send the browser to this URL, and store the verifier and the state in the user's session.
verifier = generate_token(48)
url, state = session.create_authorization_url(f"{ROOT}/oauth/authorize", code_verifier=verifier)
print(url, flush=True)

# Read the URL to which the browser was redirected.
answer = input()
if parse_qs(urlsplit(answer).query).get("iss") != [ROOT]:
    raise SystemExit("The answer is another server's.")
session.fetch_token(
    f"{ROOT}/oauth/token", authorization_response=answer, state=state, code_verifier=verifier
)

tokens = session.refresh_token(f"{ROOT}/oauth/token")
print(session.get(f"{ROOT}/api/v1/verify-token").json()["user"]["email"])
session.revoke_token(f"{ROOT}/oauth/revoke", tokens["refresh_token"])
print(session.get(f"{ROOT}/api/v1/verify-token").status_code)
