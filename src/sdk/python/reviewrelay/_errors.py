from __future__ import annotations

import json
from typing import Any


class ApiError(Exception):
    """An error response of the API."""

    def __init__(self, status: int, body: bytes, retry_after: str | None = None) -> None:
        fields = _object_of(body)
        message = fields.get("message") or fields.get("error_description")
        super().__init__(message or f"The server answered {status}.")
        self.status = status
        self.code: str = fields.get("code") or fields.get("error") or ""
        """The error code for programs, such as `slot_occupied`; empty if the response has none."""
        self.request_id: str = fields.get("request_id") or ""
        """The id of the request; quote it in support requests."""
        self.errors: dict[str, list[str]] = fields.get("errors") or {}
        """Messages by field path, in a 422."""
        is_number = retry_after is not None and retry_after.isdecimal()
        self.retry_after: float | None = float(retry_after or 0) if is_number else None
        """Seconds after which the server suggests another try, from `Retry-After`."""


def _object_of(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        # The response is not JSON, for example because a proxy sent it.
        return {}
    return value if isinstance(value, dict) else {}
