from __future__ import annotations

import json
import random
import re
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlencode

from ._errors import ApiError
from ._http import send

IDEMPOTENT = {"GET", "PUT", "DELETE"}
PASSING = {429, 500, 502, 503, 504}
"""Statuses of failures that may be temporary, in addition to 409 `request_unfinished`."""


class ReviewRelay:
    """A client of the API.

    It repeats a failed GET, PUT or DELETE, and a failed POST that has an `idempotency_key`. After `outcome_unknown` it
    repeats only the latter. Threads may share a client.
    """

    def __init__(
        self,
        server: str,
        token: str | Callable[[str | None], str] | None = None,
        *,
        retries: int = 3,
        longest_wait: float = 60,
        timeout: float = 30,
    ) -> None:
        """Creates a client of the server at a URL such as `https://reviews.example`.

        `token` is a bearer token, or a function that returns one, such as an `OAuthToken`. The client calls the
        function before each request. After a 401 it calls the function again with the token that was rejected.
        `retries` is the maximum number of times that a request is repeated. `longest_wait` is the maximum time
        before a repetition; a longer `Retry-After` is an error. `timeout` is the time limit for a response. Both are in
        seconds.
        """
        self._server = server.rstrip("/")
        self._token = token
        self._retries = retries
        self._longest_wait = longest_wait
        self._timeout = timeout

    def request(
        self,
        operation: str,
        *,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Sends a request and returns the body of the response; None if it has none.

        `operation` is a method and a path below `/api/v1`, such as `GET /partner/webhooks/{id}`. Pass an
        `idempotency_key` only to a POST that answers 201: for 24 hours, such a request with the same key gets the first
        response and creates nothing, so that the client may repeat it.
        """
        method, _, template = operation.partition(" ")
        filled = re.sub(r"\{(\w+)\}", lambda match: _segment(match[1], path or {}), template)
        given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
        url = f"{self._server}/api/v1{filled}{'?' if given else ''}{urlencode(given)}"
        data = None if body is None else json.dumps(body).encode()
        ask = self._token if callable(self._token) else None
        bearer = self._token(None) if callable(self._token) else self._token
        retry = 0
        while True:
            headers = _headers(bearer, idempotency_key, data is not None)
            wait = min(0.5 * 2**retry, self._longest_wait)
            attempt = urllib.request.Request(url, data, headers, method=method)
            try:
                text = send(attempt, self._timeout)
                return json.loads(text) if text else None
            except ApiError as answer:
                error: Exception = answer
                if answer.status == 401 and ask is not None:
                    bearer, ask = ask(str(bearer)), None
                    continue
                wait = wait if answer.retry_after is None else answer.retry_after
            except (OSError, HTTPException) as failure:
                error = failure
            is_over = retry >= self._retries or wait > self._longest_wait
            is_unknown = isinstance(error, ApiError) and error.code == "outcome_unknown"
            is_idempotent = method in IDEMPOTENT and not is_unknown
            is_repeatable = is_idempotent or idempotency_key is not None
            if not is_repeatable or not _is_passing(error) or is_over:
                raise error
            retry += 1
            # Because of the random part, clients that failed at the same time do not retry at the same time.
            time.sleep(wait * (1 + random.random() / 4))

    def pages(
        self,
        operation: str,
        *,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Pages:
        """Reads a list page by page."""

        def read(cursor: str | None) -> Any:
            given = query if cursor is None else {**(query or {}), "cursor": cursor}
            return self.request(operation, path=path, query=given)

        return Pages(read)


class Pages:
    """A list that is read page by page. Iterating over it yields the rows of all pages."""

    def __init__(self, read: Callable[[str | None], dict[str, Any]]) -> None:
        self._read = read

    def page(self, cursor: str | None = None) -> tuple[list[dict[str, Any]], str | None]:
        """Reads one page: the first page, or the page of a cursor. Returns its rows and the next cursor."""
        page = self._read(cursor)
        return page["data"], page["next_cursor"]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows, cursor = self.page()
        yield from rows
        while cursor is not None:
            rows, cursor = self.page(cursor)
            yield from rows


def _headers(bearer: str | None, key: str | None, has_body: bool) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer}"
    if key is not None:
        headers["Idempotency-Key"] = key
    if has_body:
        headers["Content-Type"] = "application/json"
    return headers


def _segment(name: str, path: Mapping[str, str | int]) -> str:
    """Encodes a value as a segment of a path. An empty value or dots would name another path."""
    value = path.get(name)
    text = "" if value is None else str(value)
    if text in ("", ".", ".."):
        raise ValueError(f"The path needs a value for {name}.")
    return quote(text, safe="")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_passing(error: Exception) -> bool:
    """Returns whether the failure may be temporary. An error without a response counts as temporary."""
    if not isinstance(error, ApiError):
        return True
    return error.status in PASSING or error.code == "request_unfinished"
