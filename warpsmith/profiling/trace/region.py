"""Choice of the analyzed part of a trace: the script's own steps without the first, else everything."""

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
from warpsmith.profiling.trace.models import Region, TraceSteps
from warpsmith.profiling.trace.names import STEP
from warpsmith.profiling.trace.read import TraceEvent, TraceEvents

NO_STEPS_ADVICE = 'mark an iteration with torch.profiler.record_function("step") for figures without it'


class Window(NamedTuple):
    """The analyzed part of the trace's time."""

    begin: int
    end: int
    windows: tuple[Interval, ...] = ()
    """Begin and end of each step; empty if there are none."""
    ignored: int = 0
    """Number of steps before it."""
    name: str = ""
    """Name of the steps' ranges without the number."""


def choose_window(events: TraceEvents, skip_seconds: float) -> Window:
    """Choose the steps that start after `skip_seconds`, except the first; without steps, all after `skip_seconds`.

    Raises:
        Misuse: nothing is left.
    """
    first, last = _extent(events)
    start = first + round(skip_seconds * 1e9)
    if start >= last:
        seconds = (last - first) / 1e9
        raise Misuse(f"Skipping {skip_seconds:g} s leaves nothing of {events.source}: it has {seconds:.3g} s.")
    name, ranges = _working_steps(*find_steps(events.ranges), events)
    if not ranges:
        return Window(start, last)
    early = sum(each.begin < start for each in ranges) if skip_seconds else 0
    ignored = max(early, 1 if len(ranges) > 1 else 0)
    if ignored == len(ranges):
        raise Misuse(f"Skipping {skip_seconds:g} s leaves none of the {len(ranges)} steps of {events.source}.")
    windows = _step_windows(ranges, events)[ignored:]
    return Window(windows[0][0], windows[-1][1], tuple(windows), ignored, name)


def find_steps(ranges: Iterable[TraceEvent]) -> tuple[str, list[TraceEvent]]:
    """Find the ranges that mark steps, in order and not nested, and return their name without the number."""
    groups: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in ranges:
        if STEP.fullmatch(event.name):
            groups[re.sub(r"[ _:]*\d*$", "", event.name)].append(event)
    if not groups:
        return "", []
    # Ranges that the script's author named come before those of the profiler's schedule.
    name = min(groups, key=lambda group: (group.startswith("ProfilerStep"), -len(groups[group])))
    outermost: list[TraceEvent] = []
    for event in sorted(groups[name], key=lambda each: (each.begin, -each.end)):
        if not outermost or event.begin >= outermost[-1].end:
            outermost.append(event)
    return name, outermost


def region_model(part: Window, events: TraceEvents, busy: Sequence[Interval], skip_seconds: float) -> Region:
    """Return the region as a model of the report."""
    first, _ = _extent(events)
    seconds = (part.end - part.begin) / 1e9
    return Region(
        begin_seconds=max(0, part.begin - first) / 1e9,
        seconds=seconds,
        skipped_seconds=skip_seconds,
        steps=_steps(part, busy),
        words=_words(part, skip_seconds),
    )


def _steps(part: Window, busy: Sequence[Interval]) -> TraceSteps | None:
    if not part.windows:
        return None
    walls = [(end - begin) / 1e9 for begin, end in part.windows]
    return TraceSteps(
        range=part.name,
        ignored=part.ignored,
        count=len(walls),
        median_seconds=statistics.median(walls),
        fastest_seconds=min(walls),
        slowest_seconds=max(walls),
        median_busy_seconds=statistics.median(length(clip(busy, *window)) for window in part.windows) / 1e9,
    )


def _words(part: Window, skip_seconds: float) -> str:
    if not part.windows:
        after = f"after the first {skip_seconds:g} s" if skip_seconds else "from the first event to the last"
        return f"the whole run {after}, warm-up included: {NO_STEPS_ADVICE}"
    total = part.ignored + len(part.windows)
    if not part.ignored:
        return f"the only step `{part.name}`, warm-up included"
    numbers = f"{part.ignored + 1} to {total}" if len(part.windows) > 1 else f"{total}"
    return f"steps `{part.name}` {numbers} of {total}, what runs between them included"


def _extent(events: TraceEvents) -> Interval:
    """Return the begin of the first and the end of the last event."""
    work = list(chain(events.work, events.operators))
    return min(event.begin for event in work), max(event.end for event in work)


def _working_steps(
    name: str, ranges: Sequence[TraceEvent], events: TraceEvents
) -> tuple[str, Sequence[TraceEvent]]:
    """Drop steps that did nothing, such as the last one of a profiler's schedule."""
    begins = sorted(
        begin for begin, _ in _work_by_call_time(events) or [(each.begin, each) for each in events.operators]
    )
    return name, [each for each in ranges if bisect_left(begins, each.begin) < bisect_left(begins, each.end)]


def _step_windows(ranges: Sequence[TraceEvent], events: TraceEvents) -> list[Interval]:
    """Return each step from its first device work to the next step's, because launches run ahead of the device."""
    work = _work_by_call_time(events)
    calls = [call for call, _ in work]
    begins, end = [], ranges[-1].end
    for step in ranges:
        caused = [event for _, event in work[bisect_left(calls, step.begin) : bisect_left(calls, step.end)]]
        begins.append(min((event.begin for event in caused), default=step.begin))
        end = max([step.end, *(event.end for event in caused)])
    return [(begin, max(begin + 1, until)) for begin, until in pairwise([*begins, end])]


def _work_by_call_time(events: TraceEvents) -> list[tuple[int, TraceEvent]]:
    """Return device work with the time of the call that caused it, in order of that time."""
    called = {call.correlation: call.begin for call in events.calls if call.correlation is not None}
    pairs = [(called[event.correlation], event) for event in events.work if event.correlation in called]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1].begin))
