from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any

from ._errors import ApiError


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Raises an error for a redirect, because its target would get the token or the secrets."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def send(request: urllib.request.Request, timeout: float) -> bytes:
    """Sends a request and returns the body of the response; raises an `ApiError` if the server rejects it."""
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            body: bytes = response.read()
            return body
    except urllib.error.HTTPError as answer:
        raise ApiError(answer.code, answer.read(), answer.headers["Retry-After"]) from None
