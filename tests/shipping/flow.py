"""Uses the client of the package as client.test.ts does in TypeScript."""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

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


reviews = list(at("none").list_partner_reviews(limit=2))
given_subscription = {
    "label": "Of a package",
    "webhook_url": "http://127.0.0.1:9/hook",
    "delivery_kind": "immediate",
}
made = at("lost").create_subscription(given_subscription)
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
    users = list(threads.map(lambda _: signed_in.verify_token(), range(4)))
users.append(ReviewRelay(f"{given['proxy']}/expired", token).verify_token())
print(
    json.dumps(
        {
            "reviews": len({review["id"] for review in reviews}),
            "hasSecret": re.fullmatch("[0-9a-f]{64}", made["secret"]) is not None,
            "label": at("busy").get_subscription(made["id"])["label"],
            "errors": [
                error_of(lambda: at("busy-post").send_test(made["id"])),
                error_of(lambda: at("limited").get_subscription(made["id"])),
                error_of(lambda: at("always").get_subscription(made["id"])),
                error_of(lambda: at("unknown-delete").delete_subscription(made["id"])),
                error_of(lambda: at("unknown").create_subscription(given_subscription)),
            ],
            "roles": [one["user"]["role"] for one in users],
        }
    )
)
