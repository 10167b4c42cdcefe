"""Arithmetic on time intervals: half-open integers in nanoseconds, so that every sum is exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

Interval = tuple[int, int]
"""Begin and end; empty if they are equal."""

Key = TypeVar("Key", bound=Hashable)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the same time as sorted intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for begin, end in sorted(i for i in intervals if i[0] < i[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    """Return the sum of the lengths."""
    return sum(end - begin for begin, end in intervals)


def clip(intervals: Iterable[Interval], begin: int, end: int) -> list[Interval]:
    """Clip intervals to the time between `begin` and `end`."""
    return [(max(a, begin), min(b, end)) for a, b in intervals if a < end and b > begin]


def subtract(whole: Sequence[Interval], removed: Sequence[Interval]) -> list[Interval]:
    """Return the time of one union that is not in another union."""
    remaining: list[Interval] = []
    first = 0
    for begin, end in whole:
        while first < len(removed) and removed[first][1] <= begin:
            first += 1
        position, index = begin, first
        while index < len(removed) and removed[index][0] < end:
            if position < removed[index][0]:
                remaining.append((position, removed[index][0]))
            position = max(position, removed[index][1])
            index += 1
        if position < end:
            remaining.append((position, end))
    return remaining


def exclusive_time(spans: Iterable[tuple[Key, Interval]]) -> dict[Key, int]:
    """Return for each key the time in which only spans of that key run."""
    edges: list[tuple[int, int, Key]] = []
    for key, (begin, end) in spans:
        if begin < end:
            edges += [(begin, 1, key), (end, -1, key)]
    edges.sort(key=itemgetter(0))
    running: Counter[Key] = Counter()
    times: defaultdict[Key, int] = defaultdict(int)
    for (begin, change, key), (until, _, _) in pairwise([*edges, *edges[-1:]]):
        running[key] += change
        if not running[key]:
            del running[key]
        if len(running) == 1:
            times[next(iter(running))] += until - begin
    return dict(times)
