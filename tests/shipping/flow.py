"""Uses the client of the package as packages-client.test.ts does in TypeScript."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from reviewrelay import ApiError, OAuthToken, ReviewRelay

given = json.load(sys.stdin)


def at(fault):
    return ReviewRelay(f"{given['proxy']}/{fault}", given["token"])


def error_of(run):
    try:
        run()
    except ApiError as error:
        return f"{error.status} {error.code}"
    return "none"


def create(relay):
    body = {
        "label": "Of a package",
        "webhook_url": "http://127.0.0.1:9/hook",
        "delivery_kind": "immediate",
    }
    return relay.request("POST /partner/webhooks", body=body, idempotency_key=str(uuid4()))


def read(relay, **other):
    return relay.request("GET /partner/webhooks/{id}", path=other or path)


def is_refused(id):
    try:
        read(at("dots"), id=id)
    except ValueError:
        return True
    return False


reviews = list(at("none").pages("GET /partner/reviews", query={"limit": 2}))
made = create(at("lost"))
path = {"id": made["id"]}
read(at("broken"))
server = f"{given['proxy']}/oauth"
token = OAuthToken(
    server,
    given["clientId"],
    given["refreshToken"],
    lambda tokens: None,
    client_secret=given["clientSecret"],
)
signed_in = ReviewRelay(server, token)
with ThreadPoolExecutor() as threads:
    users = list(threads.map(lambda _: signed_in.request("GET /verify-token"), range(4)))
users.append(ReviewRelay(f"{given['proxy']}/expired", token).request("GET /verify-token"))
print(
    json.dumps(
        {
            "reviews": len({review["id"] for review in reviews}),
            "hasSecret": re.fullmatch("[0-9a-f]{64}", made["secret"]) is not None,
            "label": read(at("busy"))["label"],
            "errors": [
                error_of(
                    lambda: at("busy-post").request("POST /partner/webhooks/{id}/test", path=path)
                ),
                error_of(lambda: read(at("limited"))),
                error_of(lambda: read(at("always"))),
                error_of(
                    lambda: at("unknown-delete").request("DELETE /partner/webhooks/{id}", path=path)
                ),
                error_of(lambda: read(at("redirect"))),
                error_of(lambda: create(at("unknown"))),
            ],
            "refused": [id for id in ("", ".", "..", None) if is_refused(id)],
            "roles": [one["user"]["role"] for one in users],
        }
    )
)
