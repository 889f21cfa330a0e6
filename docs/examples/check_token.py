# pip install "pyjwt[crypto]"
import json
import os
import sys
import urllib.request

import jwt

ROOT = os.environ["REVIEWRELAY"]  # SERVER_ROOT of ReviewRelay, such as https://reviews.example
SCOPES = {"*", "reviews:read"}  # one of these opens your route
keys = jwt.PyJWKClient(f"{ROOT}/.well-known/jwks.json", timeout=5)


def check_by_keys(token: str) -> int:
    """Answers the id of the user without asking. A revoked token passes until it expires."""
    if jwt.get_unverified_header(token).get("typ") != "at+jwt":
        raise ValueError("The token is no access token.")
    claims = jwt.decode(
        token,
        keys.get_signing_key_from_jwt(token),
        algorithms=["RS256"],
        issuer=ROOT,
        audience=f"{ROOT}/api",
        options={"require": ["exp", "sub"]},
    )
    if SCOPES.isdisjoint(claims["scope"].split()):
        raise ValueError("The token lacks the scope.")
    return int(claims["sub"])


def introspect(token: str) -> int:
    """Asks ReviewRelay, which refuses a revoked token at once."""
    headers = {"Authorization": f"Bearer {os.environ['SERVICE_TOKEN']}", "Content-Type": "application/json"}
    body = json.dumps({"token": token}).encode()
    request = urllib.request.Request(f"{ROOT}/api/v1/platform/introspect", body, headers)
    with urllib.request.urlopen(request, timeout=5) as response:
        told = json.load(response)
    if not told["active"] or SCOPES.isdisjoint(told["scope"].split()):
        raise ValueError("The token is not valid here.")
    return told["user_id"]


if __name__ == "__main__":
    # python3 check_token.py < tokens, one a line
    for line in sys.stdin:
        for check in (check_by_keys, introspect):
            try:
                print(check(line.strip()), end=" ")
            except Exception as error:
                print(error, file=sys.stderr)
                print("-", end=" ")
        print()
