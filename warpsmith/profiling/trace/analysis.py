"""Analysis of a trace: where the time goes."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace import rank as trace_rank
from warpsmith.profiling.trace import region as trace_region
from warpsmith.profiling.trace.collectives import WorkClass, classify_work
from warpsmith.profiling.trace.intervals import Interval, clip, exclusive_time, length, subtract, union
from warpsmith.profiling.trace.models import Communication, Copies, Gap, Gaps, Parts, Trace, TracedKernel, Waits
from warpsmith.profiling.trace.read import TraceEvent, TraceEvents
from warpsmith.profiling.trace.region import Window
from warpsmith.profiling.trace.slices import Slice, clip_events, self_times

COUNTED_GAP = 5_000
"""Gap in nanoseconds below which an idle device is not counted: the device's own time between kernels."""

LAUNCH_GAP = 100_000
"""Gap in nanoseconds up to which issuing the next kernel
from Python explains it; longer ones have another cause."""

_MAX_GAPS, _MAX_KERNELS = 5, 20
_EXAMPLE_LENGTH = 200
_SYNCHRONIZE = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize")
_NO_GPU_NOTE = (
    "No device activity: PyTorch's CPU operators by self time stand for kernels, and idle is time outside of them."
)
_HOST_SLOWED_NOTE = "The profiler slows the host: without it there is less idle time, never more."


def analyze_trace(events: TraceEvents, skip_seconds: float) -> Trace:
    """Analyze a trace.

    Raises:
        Misuse: `skip_seconds` leaves nothing.
    """
    window = trace_region.choose_window(events, skip_seconds)
    on_device = bool(events.work)
    slices = (
        clip_events(events.work, window.begin, window.end)
        if on_device
        else [
            *self_times(events.operators, window.begin, window.end),
            *clip_events(events.collectives, window.begin, window.end),
        ]
    )
    busy = union(piece.interval for piece in slices)
    idle = subtract([(window.begin, window.end)], busy)
    parts = _parts(slices, idle, on_device)
    kernels = _kernels(slices)
    gaps = _gaps(slices, idle, events, window)
    copies = _copies(slices)
    times = [piece.event.end - piece.event.begin for piece in slices if piece.event.kind == "kernel"]
    bound, reason = trace_rank.classify_bound(parts, on_device)
    return Trace(
        source=events.source,
        sha256=events.sha256,
        script=events.script,
        evidence="gpu" if on_device else "cpu",
        device=events.device,
        rank=events.rank,
        region=trace_region.region_model(window, events, busy, skip_seconds),
        busy_seconds=length(busy) / 1e9,
        idle_share=length(idle) / (window.end - window.begin),
        parts=parts,
        bound=bound,
        why=reason,
        launches=len(times),
        median_kernel_seconds=statistics.median(times or [0]) / 1e9,
        gaps=gaps,
        copies=copies,
        communication=_communication(slices),
        waits=_waits(events.calls, window),
        kernels=tuple(kernels[:_MAX_KERNELS]),
        ranking=trace_rank.rank_attackable(slices if on_device else (), kernels, parts, gaps, copies),
        notes=(*events.notes, _HOST_SLOWED_NOTE if on_device else _NO_GPU_NOTE),
    )  # fmt: skip


def _parts(slices: Iterable[Slice], idle: Sequence[Interval], on_device: bool) -> Parts:
    classes: defaultdict[str, list[Interval]] = defaultdict(list)
    for piece in slices:
        classes[_class(piece.event)].append(piece.interval)
    kernels, collectives = union(classes["kernels"]), union(classes["communication"])
    exposed = subtract(collectives, kernels)
    work = union([*kernels, *classes["wrappers"]])
    launches = [gap for gap in idle if on_device and gap[1] - gap[0] <= LAUNCH_GAP]
    return Parts(
        kernels_seconds=length(subtract(work, exposed)) / 1e9,
        communication_seconds=length(exposed) / 1e9,
        copies_seconds=length(subtract(union(classes["copies"]), union([*work, *exposed]))) / 1e9,
        launches_seconds=length(launches) / 1e9,
        host_seconds=(length(idle) - length(launches)) / 1e9,
    )


def _class(event: TraceEvent) -> WorkClass:
    if event.kind == "copy" and trace_names.short_kernel_name(event.name) in trace_names.HOST_COPIES:
        return "copies"
    return classify_work(event.kind, event.name)


def _kernels(slices: Iterable[Slice]) -> list[TracedKernel]:
    """Group kernels by short name, the most time first."""
    groups: defaultdict[str, list[Slice]] = defaultdict(list)
    for piece in slices:
        groups[trace_names.short_kernel_name(piece.event.name)].append(piece)
    exclusive = exclusive_time((name, piece.interval) for name, group in groups.items() for piece in group)
    kernels = []
    for name, group in groups.items():
        seconds, calls = length(piece.interval for piece in group) / 1e9, sum(piece.first for piece in group)
        example = max(group, key=lambda piece: piece.end - piece.begin).event.name
        kernels.append(
            TracedKernel(
                name=name,
                example=example[:_EXAMPLE_LENGTH],
                family=trace_names.kernel_family(example),
                calls=calls,
                seconds=seconds,
                mean_seconds=seconds / max(1, calls),
                alone_seconds=exclusive.get(name, 0) / 1e9,
            )
        )
    return sorted(kernels, key=lambda kernel: (-kernel.seconds, kernel.name))


def _gaps(slices: Sequence[Slice], idle: Iterable[Interval], events: TraceEvents, window: Window) -> Gaps:
    counted = sorted(
        (gap for gap in idle if gap[1] - gap[0] > COUNTED_GAP), key=lambda gap: (gap[0] - gap[1], gap)
    )
    ending = {piece.end: trace_names.short_kernel_name(piece.event.name) for piece in slices}
    beginning = {piece.begin: trace_names.short_kernel_name(piece.event.name) for piece in slices}
    host_events = [
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
                at_seconds=(begin - window.begin) / 1e9,
                seconds=(end - begin) / 1e9,
                after=ending.get(begin),
                before=beginning.get(end),
                host=_host_activity(self_times(host_events, begin, end), end - begin),
            )
            for begin, end in counted[:_MAX_GAPS]
        ),
    )


def _host_activity(during: Iterable[Slice], gap: int) -> str | None:
    """Return what fills at least half of a gap on the CPU: one event by name, else the largest of several."""
    times: defaultdict[str, int] = defaultdict(int)
    for each in during:
        times[each.event.name[: trace_names.SHORT_NAME_LENGTH]] += each.end - each.begin
    if not times:
        return None
    name = max(times, key=lambda name: (times[name], name))
    if 2 * times[name] >= gap:
        return name
    return f"several events, most of it {name}" if 2 * sum(times.values()) >= gap else None


def _copies(slices: Iterable[Slice]) -> tuple[Copies, ...]:
    groups: defaultdict[tuple[str, bool | None], list[Slice]] = defaultdict(list)
    for piece in slices:
        if piece.event.kind == "copy":
            groups[trace_names.copy_kind(piece.event.name)].append(piece)
    copies = [
        Copies(
            kind=kind,
            pageable=pageable,
            count=len(group),
            seconds=length(piece.interval for piece in group) / 1e9,
            bytes=_bytes(group),
        )
        for (kind, pageable), group in groups.items()
    ]
    return tuple(sorted(copies, key=lambda copies: (-copies.seconds, copies.kind, str(copies.pageable))))


def _bytes(group: Sequence[Slice]) -> int | None:
    """Return the sum of the bytes; None if one of them is unknown."""
    sizes = [piece.event.bytes for piece in group if piece.event.bytes is not None]
    return sum(sizes) if len(sizes) == len(group) else None


def _communication(slices: Sequence[Slice]) -> Communication | None:
    collectives = [piece for piece in slices if _class(piece.event) == "communication"]
    if not collectives:
        return None
    communicating = union(piece.interval for piece in collectives)
    exposed = subtract(
        communicating, union(piece.interval for piece in slices if _class(piece.event) == "kernels")
    )
    return Communication(
        count=len(collectives),
        seconds=length(communicating) / 1e9,
        exposed_seconds=length(exposed) / 1e9,
        hidden_seconds=(length(communicating) - length(exposed)) / 1e9,
    )


def _waits(calls: Iterable[TraceEvent], window: Window) -> Waits:
    waits = [(call.begin, call.end) for call in calls if _SYNCHRONIZE.match(call.name)]
    within = clip(waits, window.begin, window.end)
    return Waits(count=len(within), seconds=length(within) / 1e9)
