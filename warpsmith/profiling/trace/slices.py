"""What runs when: device work as it stands; on a CPU each operator's own time, without the operators in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from warpsmith.profiling.trace.intervals import Interval
from warpsmith.profiling.trace.read import Event


class Slice(NamedTuple):
    """A stretch of time of one event."""

    event: Event
    begin: int
    end: int
    first: bool
    """Whether it is the event's first slice: it counts the call."""

    @property
    def interval(self) -> Interval:
        """Begin and end."""
        return self.begin, self.end


def whole(events: Iterable[Event], begin: int, end: int) -> list[Slice]:
    """One slice an event, cut to the region."""
    return [
        Slice(event, max(event.begin, begin), min(event.end, end), event.begin >= begin)
        for event in events
        if event.begin < end and (event.end > begin or event.begin >= begin)
    ]


def innermost(events: Iterable[Event], begin: int, end: int) -> list[Slice]:
    """Each event's own time, cut to the region: what the events within it on the same lane leave."""
    lanes: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    for piece in whole(events, begin, end):
        lanes[piece.event.lane].append(piece.event)
    return [
        Slice(own.event, max(own.begin, begin), min(own.end, end), own.first and own.event.begin >= begin)
        for lane in lanes.values()
        for own in _own(lane)
        if own.end >= begin and own.begin <= end
    ]


class _Open:
    """An event that has begun, and where its own time goes on."""

    def __init__(self, event: Event) -> None:
        self.event, self.at, self.first = event, event.begin, True

    def until(self, end: int) -> Iterator[Slice]:
        """Its own time up to `end`."""
        end = min(end, self.event.end)
        if self.at < end or self.first:
            yield Slice(self.event, self.at, max(self.at, end), self.first)
            self.first = False
        self.at = max(self.at, end)


def _own(lane: list[Event]) -> Iterator[Slice]:
    stack: list[_Open] = []
    for event in sorted(lane, key=lambda each: (each.begin, -each.end)):
        while stack and stack[-1].event.end <= event.begin:
            yield from _closed(stack)
        if stack:
            yield from stack[-1].until(event.begin)
        stack.append(_Open(event))
    while stack:
        yield from _closed(stack)


def _closed(stack: list[_Open]) -> Iterator[Slice]:
    done = stack.pop()
    yield from done.until(done.event.end)
    if stack:
        stack[-1].at = max(stack[-1].at, done.event.end)
