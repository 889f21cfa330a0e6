from __future__ import annotations

import re
from typing import TypeAlias, TypedDict

from ._verify import Headers

NumberRange: TypeAlias = list[int]
"""The first and the last of consecutive numbers."""


class Place(TypedDict):
    """The place of an event among those of its subscription."""

    sequence: int
    """The number of the event (`X-SVC-Sequence`)."""
    settled: int
    """The number up to which every event was delivered or given up (`X-SVC-Settled`)."""


class SequenceState(TypedDict):
    """The numbers that a receiver has got from a subscription, as JSON.

    Lists are in order, without adjacent ranges.
    """

    settled: int
    """The highest settled number so far. Every number up to it was received, is missed, or is in `earlier`."""
    received: list[NumberRange]
    """The received numbers above `settled`."""
    missed: list[NumberRange]
    """The numbers up to `settled` that were not received."""
    earlier: list[NumberRange]
    """The numbers from before the first request that have not come since."""


class Step(TypedDict):
    state: SequenceState
    """The state to store."""
    missed: list[NumberRange]
    """The numbers that this request shows to be missed. Each number is reported once."""
    repeat: bool
    """Whether the number was received before."""
    filled: bool
    """Whether the number had been reported as missed."""


def place_of(headers: Headers) -> Place | None:
    """Reads the place of an event from the headers of a verified request.

    Returns None without valid headers, as in tests and batches, because an event must not be refused for them.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sequence = _number_of(given.get("x-svc-sequence", ""))
    settled = _number_of(given.get("x-svc-settled", ""))
    return {"sequence": sequence, "settled": settled} if sequence and settled is not None else None


def advance(state: SequenceState | None, place: Place) -> Step:
    """Adds a request to the state of its subscription, and tells what the receiver has missed.

    Read the state, call this function and store the new state in one transaction that locks the state, because requests
    may come at the same time. With None, the numbers up to the settled one count as events from before the headers were
    switched on. Begin with `settled` 0 and empty lists instead if the subscription has had the headers from its
    creation.
    """
    sequence, settled = place["sequence"], place["settled"]
    if state is None:
        state = {"settled": settled, "received": [], "missed": [], "earlier": _ranged(1, settled)}
    filled = _has(state["missed"], sequence)
    is_late = filled or _has(state["earlier"], sequence)
    repeat = not is_late and (sequence <= state["settled"] or _has(state["received"], sequence))
    one = _ranged(sequence, sequence)
    received = _union(state["received"], one)
    up_to = max(state["settled"], settled)
    missed = _minus(_ranged(state["settled"] + 1, up_to), received)
    return {
        "state": {
            "settled": up_to,
            "received": _minus(received, _ranged(1, up_to)),
            "missed": _union(_minus(state["missed"], one), missed),
            "earlier": _minus(state["earlier"], one),
        },
        "missed": missed,
        "repeat": repeat,
        "filled": filled,
    }


def _number_of(value: str) -> int | None:
    number = int(value) if re.fullmatch("0|[1-9][0-9]{0,15}", value) else None
    return None if number is None or number >= 2**53 else number


def _ranged(first: int, last: int) -> list[NumberRange]:
    return [] if first > last else [[first, last]]


def _has(ranges: list[NumberRange], number: int) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _union(some: list[NumberRange], others: list[NumberRange]) -> list[NumberRange]:
    """Merges two lists of ranges into one in order, without overlapping or adjacent ranges."""
    merged: list[NumberRange] = []
    for first, last in sorted([*some, *others]):
        if not merged or merged[-1][1] + 1 < first:
            merged.append([first, last])
        else:
            merged[-1][1] = max(merged[-1][1], last)
    return merged


def _minus(ranges: list[NumberRange], cuts: list[NumberRange]) -> list[NumberRange]:
    """Removes the numbers in `cuts` from `ranges`. Both lists are in order."""
    left: list[NumberRange] = []
    for start, last in ranges:
        first = start
        for cut in cuts:
            if cut[0] <= last and cut[1] >= start:
                left += _ranged(first, cut[0] - 1)
                first = cut[1] + 1
        left += _ranged(first, last)
    return left
