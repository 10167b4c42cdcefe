"""From a trace's events to where the time goes."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace import rank as trace_rank
from warpsmith.profiling.trace import region as trace_region
from warpsmith.profiling.trace.intervals import Interval, alone, clip, length, subtract, union
from warpsmith.profiling.trace.models import Communication, Copies, Gap, Gaps, Parts, Trace, TracedKernel, Waits
from warpsmith.profiling.trace.read import Event, Events
from warpsmith.profiling.trace.region import Part
from warpsmith.profiling.trace.slices import Slice, innermost, whole

COUNTED_GAP = 5_000
"""Nanoseconds: a shorter gap between kernels is the device's own."""

LAUNCH_GAP = 100_000
"""Nanoseconds: issuing the next kernel from Python explains a gap up to here; a longer one has another cause."""

_SHOWN_GAPS, _SHOWN_KERNELS = 5, 20
_EXAMPLE = 200
_SYNCHRONISE = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize")
_WITHOUT_GPU = (
    "No device activity: PyTorch's CPU operators by self time stand for kernels, and idle is time outside of them."
)
_HOST_IS_SLOWED = "The profiler slows the host: without it there is less idle time, never more."


def analyse(events: Events, skip_seconds: float) -> Trace:
    """The whole analysis.

    Raises:
        Misuse: `skip_seconds` leaves nothing.
    """
    part = trace_region.choose(events, skip_seconds)
    on_device = bool(events.work)
    cut = (
        whole(events.work, part.begin, part.end)
        if on_device
        else innermost(events.operators, part.begin, part.end)
    )
    busy = union(each.interval for each in cut)
    idle = subtract([(part.begin, part.end)], busy)
    parts = _parts(cut, idle, on_device)
    kernels = _kernels(cut)
    gaps = _gaps(cut, idle, events, part)
    copies = _copies(cut)
    times = [each.event.end - each.event.begin for each in cut if each.event.kind == "kernel"]
    bound, why = trace_rank.bound(parts, on_device)
    return Trace(
        source=events.source,
        sha256=events.sha256,
        script=events.script,
        evidence="gpu" if on_device else "cpu",
        device=events.device,
        rank=events.rank,
        region=trace_region.model(part, events, busy, skip_seconds),
        busy_seconds=length(busy) / 1e9,
        idle_share=length(idle) / (part.end - part.begin),
        parts=parts,
        bound=bound,
        why=why,
        launches=len(times),
        median_kernel_seconds=statistics.median(times or [0]) / 1e9,
        gaps=gaps,
        copies=copies,
        communication=_communication(cut),
        waits=_waits(events.calls, part),
        kernels=tuple(kernels[:_SHOWN_KERNELS]),
        ranking=trace_rank.ranking(cut if on_device else (), kernels, parts, gaps, copies),
        notes=(*events.notes, _HOST_IS_SLOWED if on_device else _WITHOUT_GPU),
    )  # fmt: skip


def _parts(cut: Iterable[Slice], idle: Sequence[Interval], on_device: bool) -> Parts:
    classes: defaultdict[str, list[Interval]] = defaultdict(list)
    for each in cut:
        classes[_class(each.event)].append(each.interval)
    kernels, collectives = union(classes["kernels"]), union(classes["communication"])
    compute_or_talk = union([*kernels, *collectives])
    launches = [gap for gap in idle if on_device and gap[1] - gap[0] <= LAUNCH_GAP]
    return Parts(
        kernels_seconds=length(kernels) / 1e9,
        communication_seconds=length(subtract(collectives, kernels)) / 1e9,
        copies_seconds=length(subtract(union(classes["copies"]), compute_or_talk)) / 1e9,
        launches_seconds=length(launches) / 1e9,
        host_seconds=(length(idle) - length(launches)) / 1e9,
    )


def _class(event: Event) -> str:
    if event.kind == "copy" and trace_names.short(event.name) in trace_names.HOST_COPIES:
        return "copies"
    if event.kind == "kernel" and trace_names.family(event.name) == "communication":
        return "communication"
    return "kernels"


def _kernels(cut: Iterable[Slice]) -> list[TracedKernel]:
    """By short name, the most time first."""
    groups: defaultdict[str, list[Slice]] = defaultdict(list)
    for each in cut:
        groups[trace_names.short(each.event.name)].append(each)
    exclusive = alone((name, each.interval) for name, group in groups.items() for each in group)
    found = []
    for name, group in groups.items():
        seconds, calls = length(each.interval for each in group) / 1e9, sum(each.first for each in group)
        example = max(group, key=lambda each: each.end - each.begin).event.name
        found.append(
            TracedKernel(
                name=name,
                example=example[:_EXAMPLE],
                family=trace_names.family(example),
                calls=calls,
                seconds=seconds,
                mean_seconds=seconds / max(1, calls),
                alone_seconds=exclusive.get(name, 0) / 1e9,
            )
        )
    return sorted(found, key=lambda kernel: (-kernel.seconds, kernel.name))


def _gaps(cut: Sequence[Slice], idle: Iterable[Interval], events: Events, part: Part) -> Gaps:
    counted = sorted(
        (gap for gap in idle if gap[1] - gap[0] > COUNTED_GAP), key=lambda gap: (gap[0] - gap[1], gap)
    )
    ending = {each.end: trace_names.short(each.event.name) for each in cut}
    beginning = {each.begin: trace_names.short(each.event.name) for each in cut}
    named = [
        event
        for event in (*events.operators, *events.calls, *events.ranges)
        if not trace_names.STEP.fullmatch(event.name)
    ]
    return Gaps(
        threshold_seconds=COUNTED_GAP / 1e9,
        count=len(counted),
        seconds=length(counted) / 1e9,
        largest=tuple(
            Gap(
                at_seconds=(begin - part.begin) / 1e9,
                seconds=(end - begin) / 1e9,
                after=ending.get(begin),
                before=beginning.get(end),
                host=_doing(innermost(named, begin, end), end - begin),
            )
            for begin, end in counted[:_SHOWN_GAPS]
        ),
    )


def _doing(during: Iterable[Slice], gap: int) -> str | None:
    """What fills at least half of a gap on the CPU: one event by name, else the largest of several."""
    times: defaultdict[str, int] = defaultdict(int)
    for each in during:
        times[each.event.name[: trace_names.LONGEST]] += each.end - each.begin
    if not times:
        return None
    name = max(times, key=lambda name: (times[name], name))
    if 2 * times[name] >= gap:
        return name
    return f"several events, most of it {name}" if 2 * sum(times.values()) >= gap else None


def _copies(cut: Iterable[Slice]) -> tuple[Copies, ...]:
    groups: defaultdict[tuple[str, bool | None], list[Slice]] = defaultdict(list)
    for each in cut:
        if each.event.kind == "copy":
            groups[trace_names.copied(each.event.name)].append(each)
    found = [
        Copies(
            kind=kind,
            pageable=pageable,
            count=len(group),
            seconds=length(each.interval for each in group) / 1e9,
            bytes=_bytes(group),
        )
        for (kind, pageable), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda copies: (-copies.seconds, copies.kind, str(copies.pageable))))


def _bytes(group: Sequence[Slice]) -> int | None:
    """Their sum; unknown where one of them is unknown."""
    known = [each.event.bytes for each in group if each.event.bytes is not None]
    return sum(known) if len(known) == len(group) else None


def _communication(cut: Sequence[Slice]) -> Communication | None:
    collectives = [each for each in cut if _class(each.event) == "communication"]
    if not collectives:
        return None
    talking = union(each.interval for each in collectives)
    exposed = subtract(talking, union(each.interval for each in cut if _class(each.event) == "kernels"))
    return Communication(
        count=len(collectives),
        seconds=length(talking) / 1e9,
        exposed_seconds=length(exposed) / 1e9,
        hidden_seconds=(length(talking) - length(exposed)) / 1e9,
    )


def _waits(calls: Iterable[Event], part: Part) -> Waits:
    waits = [(call.begin, call.end) for call in calls if _SYNCHRONISE.match(call.name)]
    within = clip(waits, part.begin, part.end)
    return Waits(count=len(within), seconds=length(within) / 1e9)
