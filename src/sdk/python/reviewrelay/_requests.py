from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")


class Pages(Generic[T]):
    """A list that is read page by page. Iterating over it yields the rows of all pages."""

    def __init__(self, read: Callable[[str | None], dict[str, Any]]) -> None:
        self._read = read

    def page(self, cursor: str | None = None) -> tuple[list[T], str | None]:
        """Reads one page: the first page, or the page of a cursor. Returns its rows and the next cursor."""
        page = self._read(cursor)
        return page["data"], page["next_cursor"]

    def __iter__(self) -> Iterator[T]:
        rows, cursor = self.page()
        yield from rows
        while cursor is not None:
            rows, cursor = self.page(cursor)
            yield from rows


class Requests(ABC):
    """The base of the generated methods."""

    @abstractmethod
    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Sends a request and returns the body of the response. `key` is an `Idempotency-Key`."""

    def _pages(self, path: str, *, query: Mapping[str, Any]) -> Pages[Any]:
        def read(cursor: str | None) -> Any:
            given = query if cursor is None else {**query, "cursor": cursor}
            return self._send("GET", path, query=given)

        return Pages(read)


def segment(value: str | int) -> str:
    """Returns a value, encoded as a segment of a path."""
    return quote(str(value), safe="")


def new_key() -> str:
    return str(uuid.uuid4())
