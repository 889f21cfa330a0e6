from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import TypedDict
from urllib.parse import urlencode

from ._http import send

MARGIN_S = 60
"""Maximum time in seconds before its expiry at which an access token is refreshed."""


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
            lifetime = tokens["expires_in"]
            self._until = time.monotonic() + lifetime - min(MARGIN_S, lifetime / 2)
            return self._access_token

    def _redeem(self) -> OAuthTokens:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._refresh_token,
            **self._client,
        }
        request = urllib.request.Request(f"{self._server}/oauth/token", urlencode(form).encode())
        tokens: OAuthTokens = json.loads(send(request, 30))
        return tokens
