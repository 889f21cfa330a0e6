from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import TypedDict
from urllib.parse import urlencode

from ._errors import ApiError

MARGIN_S = 60
"""Time in seconds before its expiry at which an access token is refreshed."""


class OAuthTokens(TypedDict):
    """The tokens of a sign-in by OAuth."""

    access_token: str
    refresh_token: str
    expires_in: int


class OAuthToken:
    """The `token` function of a client, created from a refresh token.

    It refreshes the access token before it expires and after a 401. A refresh token is valid once, so `store` must save
    the new one; the client waits for `store` before it uses the access token. Threads share one refresh. Only one
    process may refresh at a time.
    """

    def __init__(
        self,
        server: str,
        client_id: str,
        refresh_token: str,
        store: Callable[[OAuthTokens], object],
        *,
        client_secret: str | None = None,
    ) -> None:
        self._server = server.rstrip("/")
        self._client = {"client_id": client_id}
        if client_secret is not None:
            self._client["client_secret"] = client_secret
        self._refresh_token = refresh_token
        self._store = store
        self._lock = threading.Lock()
        self._access_token: str | None = None
        self._until = 0.0

    def __call__(self, refused: str | None) -> str:
        with self._lock:
            token = self._access_token
            if token is not None and token != refused and time.monotonic() < self._until:
                return token
            tokens = self._redeem()
            self._refresh_token = tokens["refresh_token"]
            self._store(tokens)
            self._access_token = tokens["access_token"]
            self._until = time.monotonic() + tokens["expires_in"] - MARGIN_S
            return self._access_token

    def _redeem(self) -> OAuthTokens:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._refresh_token,
            **self._client,
        }
        url = f"{self._server}/oauth/token"
        try:
            with urllib.request.urlopen(url, urlencode(form).encode(), timeout=30) as response:
                tokens: OAuthTokens = json.loads(response.read())
                return tokens
        except urllib.error.HTTPError as answer:
            raise ApiError(answer.code, answer.read()) from None
