"""Slices of time: device work as recorded; on a CPU each operator's own time, without nested operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from warpsmith.profiling.trace.intervals import Interval
from warpsmith.profiling.trace.read import TraceEvent


class Slice(NamedTuple):
    """A stretch of time of one event."""

    event: TraceEvent
    begin: int
    end: int
    first: bool
    """True if it is the first slice of its event, which counts as the call."""

    @property
    def interval(self) -> Interval:
        """Begin and end in nanoseconds."""
        return self.begin, self.end


def clip_events(events: Iterable[TraceEvent], begin: int, end: int) -> list[Slice]:
    """Return one slice for each event, clipped to the region."""
    return [
        Slice(event, max(event.begin, begin), min(event.end, end), event.begin >= begin)
        for event in events
        if event.begin < end and (event.end > begin or event.begin >= begin)
    ]


def self_times(events: Iterable[TraceEvent], begin: int, end: int) -> list[Slice]:
    """Return each event's own time, clipped to the region: without events nested in it on the same lane."""
    lanes: defaultdict[tuple[str, str], list[TraceEvent]] = defaultdict(list)
    for piece in clip_events(events, begin, end):
        lanes[piece.event.lane].append(piece.event)
    return [
        Slice(own.event, max(own.begin, begin), min(own.end, end), own.first and own.event.begin >= begin)
        for lane in lanes.values()
        for own in _own_slices(lane)
        if own.end >= begin and own.begin <= end
    ]


class _OpenEvent:
    """An event that has begun, and the time from which its own time continues."""

    def __init__(self, event: TraceEvent) -> None:
        self.event, self.at, self.first = event, event.begin, True

    def until(self, end: int) -> Iterator[Slice]:
        """Yield the event's own time up to `end`."""
        end = min(end, self.event.end)
        if self.at < end or self.first:
            yield Slice(self.event, self.at, max(self.at, end), self.first)
            self.first = False
        self.at = max(self.at, end)


def _own_slices(lane: list[TraceEvent]) -> Iterator[Slice]:
    stack: list[_OpenEvent] = []
    for event in sorted(lane, key=lambda each: (each.begin, -each.end)):
        while stack and stack[-1].event.end <= event.begin:
            yield from _close_last(stack)
        if stack:
            yield from stack[-1].until(event.begin)
        stack.append(_OpenEvent(event))
    while stack:
        yield from _close_last(stack)


def _close_last(stack: list[_OpenEvent]) -> Iterator[Slice]:
    closed = stack.pop()
    yield from closed.until(closed.event.end)
    if stack:
        stack[-1].at = max(stack[-1].at, closed.event.end)
