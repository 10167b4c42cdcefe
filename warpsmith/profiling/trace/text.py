"""A trace's analysis as Markdown, short enough for an agent."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.models import Copies, Trace, TracedKernel

_ROWS, _GAPS, _COPIES = 6, 2, 4
_NAME, _TITLE = 40, 100
_MOST = 2000
"""Characters of the whole: under 600 tokens."""


def text(trace: Trace) -> str:
    """The analysis in under 600 tokens, long tables cut; kernels a step where the script marks steps."""
    whole = ""
    for rows in range(_ROWS, 0, -1):
        lines = [*_head(trace), *_waits(trace), *_kernels(trace, rows), *_ranking(trace, rows), *_notes(trace)]
        whole = "\n".join(lines) + "\n"
        if len(whole) <= _MOST:
            break
    return whole


def duration(seconds: float) -> str:
    """Three digits with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _head(trace: Trace) -> Iterator[str]:
    rank = "" if trace.rank is None else f", rank {trace.rank}"
    on = trace.device or ("a GPU" if trace.evidence == "gpu" else "CPU")
    yield f"## Trace: {trace.script[:_TITLE] or trace.source[-_TITLE:]} on {on}{rank}"
    yield f"Region: {trace.region.words}."
    steps = trace.region.steps
    if steps:
        yield (
            f"Step: median {duration(steps.median_seconds)} ({duration(steps.fastest_seconds)} to "
            f"{duration(steps.slowest_seconds)}), busy {duration(steps.median_busy_seconds)}."
        )
    busy, idle = ("busy", "idle") if trace.evidence == "gpu" else ("in operators", "outside")
    wall = f"Wall {duration(trace.region.seconds)}, {busy} {duration(trace.busy_seconds)}"
    yield f"{wall}, {idle} {trace.idle_share:.0%}."
    if trace.launches:
        yield f"{trace.launches} kernels, half of them under {duration(trace.median_kernel_seconds)}."
    yield f"### Bound: {trace.bound}"
    yield f"{trace.why}."


def _waits(trace: Trace) -> Iterator[str]:
    if trace.communication:
        talk = trace.communication
        yield (
            f"- Communication: {talk.count} collectives, {duration(talk.exposed_seconds)} exposed, "
            f"{duration(talk.hidden_seconds)} hidden."
        )
    if trace.copies:
        yield f"- Copies: {'; '.join(_copied(copies) for copies in trace.copies[:_COPIES])}."
    if trace.waits.count:
        yield f"- Synchronisations: {trace.waits.count}, the CPU waits {duration(trace.waits.seconds)}."
    gaps = trace.gaps
    if gaps.count:
        over = duration(gaps.threshold_seconds)
        yield f"- Gaps over {over}: {gaps.count}, {duration(gaps.seconds)}; the largest:"
    for gap in gaps.largest[:_GAPS]:
        between = f"{(gap.after or 'begin')[:_NAME]} -> {(gap.before or 'end')[:_NAME]}"
        yield f"  - {duration(gap.seconds)}, {between}: {gap.host or 'no operator on the CPU'}"


def _copied(copies: Copies) -> str:
    memory = {True: " pageable", False: " pinned", None: ""}[copies.pageable]
    size = "" if copies.bytes is None else f", {_size(copies.bytes)}"
    return f"{copies.count} {copies.kind}{memory} {duration(copies.seconds)}{size}"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _kernels(trace: Trace, rows: int) -> Iterator[str]:
    each = " a step" if trace.region.steps else ""
    yield f"### {'Kernels' if trace.evidence == 'gpu' else 'Operators, self time'}{each}"
    yield "| Name | Calls | Time | Mean |"
    yield "| --- | --- | --- | --- |"
    for kernel in trace.kernels[:rows]:
        yield _kernel(kernel, trace.repetitions)


def _kernel(kernel: TracedKernel, repetitions: int) -> str:
    name = kernel.name[:_NAME].replace("|", "/")
    calls, time = kernel.calls / repetitions, duration(kernel.seconds / repetitions)
    return f"| {name} | {calls:.4g} | {time} | {duration(kernel.mean_seconds)} |"


def _ranking(trace: Trace, rows: int) -> Iterator[str]:
    yield "### Amdahl"
    yield "| If free | Share | Speedup at most | How |"
    yield "| --- | --- | --- | --- |"
    for row in trace.ranking[:rows]:
        ceiling = "-" if row.ceiling is None else f"{row.ceiling:.3g}"
        yield f"| {row.name[:_NAME].replace('|', '/')} | {row.share:.0%} | {ceiling} | {row.attack} |"


def _notes(trace: Trace) -> Iterator[str]:
    for note in trace.notes:
        yield f"- {note}"
