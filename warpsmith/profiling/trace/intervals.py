"""Arithmetic on intervals of time: integers (nanoseconds), half open, so that every sum is exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

Interval = tuple[int, int]
"""Begin and end; empty where they are equal."""

Key = TypeVar("Key", bound=Hashable)


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time as sorted intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for begin, end in sorted(i for i in intervals if i[0] < i[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    """Sum of the lengths."""
    return sum(end - begin for begin, end in intervals)


def clip(intervals: Iterable[Interval], begin: int, end: int) -> list[Interval]:
    """What lies between `begin` and `end`."""
    return [(max(a, begin), min(b, end)) for a, b in intervals if a < end and b > begin]


def subtract(whole: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """The time of one union that is not in another union."""
    left: list[Interval] = []
    first = 0
    for begin, end in whole:
        while first < len(taken) and taken[first][1] <= begin:
            first += 1
        at, index = begin, first
        while index < len(taken) and taken[index][0] < end:
            if at < taken[index][0]:
                left.append((at, taken[index][0]))
            at = max(at, taken[index][1])
            index += 1
        if at < end:
            left.append((at, end))
    return left


def alone(spans: Iterable[tuple[Key, Interval]]) -> dict[Key, int]:
    """For each key the time in which only spans of that key run."""
    edges: list[tuple[int, int, Key]] = []
    for key, (begin, end) in spans:
        if begin < end:
            edges += [(begin, 1, key), (end, -1, key)]
    edges.sort(key=itemgetter(0))
    running: Counter[Key] = Counter()
    found: defaultdict[Key, int] = defaultdict(int)
    for (at, change, key), (until, _, _) in pairwise([*edges, *edges[-1:]]):
        running[key] += change
        if not running[key]:
            del running[key]
        if len(running) == 1:
            found[next(iter(running))] += until - at
    return dict(found)
