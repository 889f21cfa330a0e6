from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol, TypeAlias

Event: TypeAlias = dict[str, Any]
"""The full body of a delivery, as the guide Events describes it."""
MinimalEvent: TypeAlias = dict[str, Any]
"""The body of a delivery to a subscription whose `payload_mode` is `minimal`."""


class Headers(Protocol):
    """The headers of a request, such as those of Flask, Django, Starlette and `http.server`, or a dictionary."""

    def items(self) -> Iterable[tuple[str, str]]: ...


class SignatureError(Exception):
    """A delivery has no valid signature or is too old. Respond with status 401."""


def verify(
    body: bytes,
    headers: Headers,
    secrets: str | Iterable[str],
    *,
    tolerance: float = 300,
    now: float | None = None,
) -> Event:
    """Verifies a delivery with a full body and returns its event.

    `body` is the raw body as received. `secrets` are the current secrets of the subscription; there are two during a
    rotation. Raises a `SignatureError` if no secret matches, or if the time of the delivery differs from `now` by more
    than `tolerance` seconds. `now` is the current time by default.
    """
    event: Event = _verified(body, headers, secrets, tolerance, now)
    if event.get("delivered_at") is None:
        raise SignatureError("The body has no time: it is that of verify_minimal.")
    _check_time(datetime.fromisoformat(event["delivered_at"]).timestamp(), tolerance, now)
    return event


def verify_minimal(
    body: bytes,
    headers: Headers,
    secrets: str | Iterable[str],
    *,
    tolerance: float = 300,
    now: float | None = None,
) -> MinimalEvent:
    """Verifies a delivery to a subscription whose `payload_mode` is `minimal`.

    Its body contains no time, so the age of a delivery is checked only if the subscription has `standard_webhooks`.
    """
    event: MinimalEvent = _verified(body, headers, secrets, tolerance, now)
    return event


def _verified(
    body: bytes,
    headers: Headers,
    secrets: str | Iterable[str],
    tolerance: float,
    now: float | None,
) -> Any:
    # An empty header counts as absent.
    given = {name.lower(): value for name, value in headers.items() if value != ""}
    named = [secrets] if isinstance(secrets, str) else list(secrets)
    keys = [_key_of(secret) for secret in named]
    if {"webhook-id", "webhook-timestamp", "webhook-signature"} <= given.keys():
        timestamp = given["webhook-timestamp"]
        signed = f"{given['webhook-id']}.{timestamp}.".encode() + body
        digests = (hmac.digest(key, signed, hashlib.sha256) for key in keys)
        expected = [f"v1,{base64.b64encode(digest).decode()}" for digest in digests]
        _require_match(given["webhook-signature"].split(" "), expected)
        _check_time(float(timestamp), tolerance, now)
    else:
        names = ("x-svc-signature", "x-svc-signature-previous")
        # A secret in the form whsec_ requires the headers above. A replayed delivery could omit them, because they
        # contain the time.
        plain = [secret.encode() for secret in named if not secret.startswith(_STANDARD)]
        digests = (hmac.digest(key, body, hashlib.sha256) for key in plain)
        expected = [f"sha256={digest.hex()}" for digest in digests]
        _require_match([given.get(name, "") for name in names], expected)
    return json.loads(body)


_STANDARD = "whsec_"
_LEAST_BYTES = 8
"""Minimum length in bytes of a key in the form `whsec_`: the shortest secret that a subscription can have."""


def _key_of(secret: str) -> bytes:
    """Returns the key of a secret. After `whsec_`, the form of Standard Webhooks, follows the base64 of the secret."""
    if secret == "":
        raise ValueError("A secret is empty.")
    if not secret.startswith(_STANDARD):
        return secret.encode()
    encoded = secret.removeprefix(_STANDARD)
    try:
        key = base64.b64decode(encoded)
    except ValueError:
        key = b""
    # The decoder ignores other characters, so the key is encoded again and compared.
    if base64.b64encode(key).decode() != encoded or len(key) < _LEAST_BYTES:
        raise ValueError("A secret is not whsec_ and the base64 of at least 8 bytes.")
    return key


def _require_match(given: list[str], expected: list[str]) -> None:
    fits = [hmac.compare_digest(one.encode(), other.encode()) for one in given for other in expected]
    if not any(fits):
        raise SignatureError("No signature fits a secret.")


def _check_time(at: float, tolerance: float, now: float | None) -> None:
    # The negated comparison also rejects a time that is not a number.
    if not abs((time.time() if now is None else now) - at) <= tolerance:
        raise SignatureError("The delivery is too old, or the clock is wrong.")
