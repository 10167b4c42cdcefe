"""Which part of a trace is analysed: the script's own steps without the first, else everything."""

from __future__ import annotations

import re
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from warpsmith.errors import Misuse
from warpsmith.profiling.trace.intervals import Interval, clip, length
from warpsmith.profiling.trace.models import Region, Steps
from warpsmith.profiling.trace.names import STEP
from warpsmith.profiling.trace.read import Event, Events

UNMARKED = 'mark an iteration with torch.profiler.record_function("step") for figures without it'


class Part(NamedTuple):
    """A part of the trace's time."""

    begin: int
    end: int
    windows: tuple[Interval, ...] = ()
    """The steps in it; empty where there are none."""
    ignored: int = 0
    """Steps before it."""
    name: str = ""
    """Their ranges' name without the number."""


def choose(events: Events, skip_seconds: float) -> Part:
    """The steps that start after `skip_seconds`, never the first one; without steps all after `skip_seconds`.

    Raises:
        Misuse: nothing is left.
    """
    first, last = _extent(events)
    start = first + round(skip_seconds * 1e9)
    if start >= last:
        seconds = (last - first) / 1e9
        raise Misuse(f"Skipping {skip_seconds:g} s leaves nothing of {events.source}: it has {seconds:.3g} s.")
    name, ranges = _at_work(*steps(events.ranges), events)
    if not ranges:
        return Part(start, last)
    early = sum(each.begin < start for each in ranges) if skip_seconds else 0
    ignored = max(early, 1 if len(ranges) > 1 else 0)
    if ignored == len(ranges):
        raise Misuse(f"Skipping {skip_seconds:g} s leaves none of the {len(ranges)} steps of {events.source}.")
    windows = _windows(ranges, events)[ignored:]
    return Part(windows[0][0], windows[-1][1], tuple(windows), ignored, name)


def steps(ranges: Iterable[Event]) -> tuple[str, list[Event]]:
    """The ranges that mark steps, in order, none inside another, and their name without the number."""
    groups: defaultdict[str, list[Event]] = defaultdict(list)
    for event in ranges:
        if STEP.fullmatch(event.name):
            groups[re.sub(r"[ _:]*\d*$", "", event.name)].append(event)
    if not groups:
        return "", []
    # What the script's author named comes before what the profiler's schedule names by itself.
    name = min(groups, key=lambda group: (group.startswith("ProfilerStep"), -len(groups[group])))
    outermost: list[Event] = []
    for event in sorted(groups[name], key=lambda each: (each.begin, -each.end)):
        if not outermost or event.begin >= outermost[-1].end:
            outermost.append(event)
    return name, outermost


def model(part: Part, events: Events, busy: Sequence[Interval], skip_seconds: float) -> Region:
    """The region as it is told."""
    first, _ = _extent(events)
    seconds = (part.end - part.begin) / 1e9
    return Region(
        begin_seconds=max(0, part.begin - first) / 1e9,
        seconds=seconds,
        skipped_seconds=skip_seconds,
        steps=_steps(part, busy),
        words=_words(part, skip_seconds),
    )


def _steps(part: Part, busy: Sequence[Interval]) -> Steps | None:
    if not part.windows:
        return None
    walls = [(end - begin) / 1e9 for begin, end in part.windows]
    return Steps(
        range=part.name,
        ignored=part.ignored,
        count=len(walls),
        median_seconds=statistics.median(walls),
        fastest_seconds=min(walls),
        slowest_seconds=max(walls),
        median_busy_seconds=statistics.median(length(clip(busy, *window)) for window in part.windows) / 1e9,
    )


def _words(part: Part, skip_seconds: float) -> str:
    if not part.windows:
        after = f"after the first {skip_seconds:g} s" if skip_seconds else "from the first event to the last"
        return f"the whole run {after}, warm-up included: {UNMARKED}"
    total = part.ignored + len(part.windows)
    if not part.ignored:
        return f"the only step `{part.name}`, warm-up included"
    which = f"{part.ignored + 1} to {total}" if len(part.windows) > 1 else f"{total}"
    return f"steps `{part.name}` {which} of {total}, what runs between them included"


def _extent(events: Events) -> Interval:
    """Begin of the first and end of the last event that is work."""
    work = list(chain(events.work, events.operators))
    return min(event.begin for event in work), max(event.end for event in work)


def _at_work(name: str, ranges: Sequence[Event], events: Events) -> tuple[str, Sequence[Event]]:
    """Without steps that did nothing, such as the last one of a profiler's schedule."""
    begins = sorted(begin for begin, _ in _caused(events) or [(each.begin, each) for each in events.operators])
    return name, [each for each in ranges if bisect_left(begins, each.begin) < bisect_left(begins, each.end)]


def _windows(ranges: Sequence[Event], events: Events) -> list[Interval]:
    """Each step from its first work on the device to the next step's: launches run ahead of the device."""
    work = _caused(events)
    calls = [call for call, _ in work]
    begins, end = [], ranges[-1].end
    for step in ranges:
        caused = [event for _, event in work[bisect_left(calls, step.begin) : bisect_left(calls, step.end)]]
        begins.append(min((event.begin for event in caused), default=step.begin))
        end = max([step.end, *(event.end for event in caused)])
    return [(begin, max(begin + 1, until)) for begin, until in pairwise([*begins, end])]


def _caused(events: Events) -> list[tuple[int, Event]]:
    """Work on the device with the time of the call that caused it, in that order."""
    called = {call.correlation: call.begin for call in events.calls if call.correlation is not None}
    pairs = [(called[event.correlation], event) for event in events.work if event.correlation in called]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1].begin))
