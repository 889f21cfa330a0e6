"""Uses the generated Python client from sign-in to delivery. Where mypy is installed, it type-checks this file too."""

import json
import sys
import time

from reviewrelay_client import AuthenticatedClient, Client
from reviewrelay_client.api.sign_in import sign_in
from reviewrelay_client.api.webhooks import (
    create_subscription,
    get_delivery,
    list_subscriptions,
    send_test,
)
from reviewrelay_client.models import (
    BatchInterval,
    Delivery,
    DeliveryKind,
    EventValue,
    Login,
    NewSubscription,
    Problem,
    QueuedEvent,
    SignedIn,
    SubscriptionPage,
    SubscriptionWithSecret,
    Test,
)

root, email, password, webhook_url = sys.argv[1:5]
signed = sign_in.sync(client=Client(base_url=root), body=Login(email=email, password=password))
assert isinstance(signed, SignedIn), signed
client = AuthenticatedClient(base_url=root, token=signed.token)

body = NewSubscription(
    label="By the client",
    webhook_url=webhook_url,
    delivery_kind=DeliveryKind.IMMEDIATE,
)
made = create_subscription.sync(client=client, body=body)
assert isinstance(made, SubscriptionWithSecret), made

event = Test(event=EventValue.REVIEW_RECEIVED)
queued = send_test.sync(made.id, client=client, body=event)
assert isinstance(queued, QueuedEvent), queued
state = ""
for _ in range(200):
    time.sleep(0.05)
    delivery = get_delivery.sync(made.id, queued.event_id, client=client)
    assert isinstance(delivery, Delivery), delivery
    state = delivery.state
    if state == "delivered":
        break

batch = NewSubscription(
    label="Later",
    webhook_url=webhook_url,
    delivery_kind=DeliveryKind.BATCH,
    batch_interval_hours=BatchInterval(12),
)
create_subscription.sync(client=client, body=batch)
page = list_subscriptions.sync(client=client, limit=1)
assert isinstance(page, SubscriptionPage), page
ids = [one.id for one in page.data]
while page.next_cursor:
    page = list_subscriptions.sync(client=client, limit=1, cursor=page.next_cursor)
    assert isinstance(page, SubscriptionPage), page
    ids += [one.id for one in page.data]

taken = create_subscription.sync(client=client, body=body)
assert isinstance(taken, Problem), taken
stranger = list_subscriptions.sync(client=AuthenticatedClient(base_url=root, token="nonsense"))
assert isinstance(stranger, Problem), stranger
codes = [taken.code, stranger.code]
print(json.dumps({"secret": made.secret, "state": str(state), "pages": len(ids), "codes": codes}))
