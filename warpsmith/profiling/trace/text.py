"""A trace's analysis as Markdown, short enough for an agent."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.models import Copies, Trace, TracedKernel

_MAX_ROWS, _MAX_GAPS, _MAX_COPIES = 6, 2, 4
_NAME_LENGTH, _TITLE_LENGTH = 40, 100
_MAX_CHARACTERS = 2000
"""Largest number of characters of the text: under 600 tokens."""


def render_trace(trace: Trace) -> str:
    """Render the analysis in under 600 tokens by shortening tables; per step if the script marks steps."""
    whole = ""
    for rows in range(_MAX_ROWS, 0, -1):
        lines = [*_head(trace), *_waits(trace), *_kernels(trace, rows), *_ranking(trace, rows), *_notes(trace)]
        whole = "\n".join(lines) + "\n"
        if len(whole) <= _MAX_CHARACTERS:
            break
    return whole


def format_duration(seconds: float) -> str:
    """Format a duration with three digits and a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _head(trace: Trace) -> Iterator[str]:
    rank = "" if trace.rank is None else f", rank {trace.rank}"
    device = trace.device or ("a GPU" if trace.evidence == "gpu" else "CPU")
    yield f"## Trace: {trace.script[:_TITLE_LENGTH] or trace.source[-_TITLE_LENGTH:]} on {device}{rank}"
    yield f"Region: {trace.region.words}."
    steps = trace.region.steps
    if steps:
        yield (
            f"Step: median {format_duration(steps.median_seconds)} ({format_duration(steps.fastest_seconds)} to "
            f"{format_duration(steps.slowest_seconds)}), busy {format_duration(steps.median_busy_seconds)}."
        )
    busy, idle = ("busy", "idle") if trace.evidence == "gpu" else ("in operators", "outside")
    wall = f"Wall {format_duration(trace.region.seconds)}, {busy} {format_duration(trace.busy_seconds)}"
    yield f"{wall}, {idle} {trace.idle_share:.0%}."
    if trace.launches:
        yield f"{trace.launches} kernels, half of them under {format_duration(trace.median_kernel_seconds)}."
    yield f"### Bound: {trace.bound}"
    yield f"{trace.why}."


def _waits(trace: Trace) -> Iterator[str]:
    if trace.communication:
        talk = trace.communication
        yield (
            f"- Communication: {talk.count} collectives, {format_duration(talk.exposed_seconds)} exposed, "
            f"{format_duration(talk.hidden_seconds)} hidden."
        )
    if trace.copies:
        yield f"- Copies: {'; '.join(_copy_text(copies) for copies in trace.copies[:_MAX_COPIES])}."
    if trace.waits.count:
        yield f"- Synchronisations: {trace.waits.count}, the CPU waits {format_duration(trace.waits.seconds)}."
    gaps = trace.gaps
    if gaps.count:
        over = format_duration(gaps.threshold_seconds)
        yield f"- Gaps over {over}: {gaps.count}, {format_duration(gaps.seconds)}; the largest:"
    for gap in gaps.largest[:_MAX_GAPS]:
        between = f"{(gap.after or 'begin')[:_NAME_LENGTH]} -> {(gap.before or 'end')[:_NAME_LENGTH]}"
        yield f"  - {format_duration(gap.seconds)}, {between}: {gap.host or 'no operator on the CPU'}"


def _copy_text(copies: Copies) -> str:
    memory = {True: " pageable", False: " pinned", None: ""}[copies.pageable]
    size = "" if copies.bytes is None else f", {format_bytes(copies.bytes)}"
    return f"{copies.count} {copies.kind}{memory} {format_duration(copies.seconds)}{size}"


def format_bytes(count: float) -> str:
    """Format bytes with three digits, as `1.58 MB`."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def _kernels(trace: Trace, rows: int) -> Iterator[str]:
    each = " a step" if trace.region.steps else ""
    yield f"### {'Kernels' if trace.evidence == 'gpu' else 'Operators, self time'}{each}"
    yield "| Name | Calls | Time | Mean |"
    yield "| --- | --- | --- | --- |"
    for kernel in trace.kernels[:rows]:
        yield _kernel(kernel, trace.repetitions)


def _kernel(kernel: TracedKernel, repetitions: int) -> str:
    name = kernel.name[:_NAME_LENGTH].replace("|", "/")
    calls, time = kernel.calls / repetitions, format_duration(kernel.seconds / repetitions)
    return f"| {name} | {calls:.4g} | {time} | {format_duration(kernel.mean_seconds)} |"


def _ranking(trace: Trace, rows: int) -> Iterator[str]:
    yield "### Amdahl"
    yield "| If free | Share | Speedup at most | How |"
    yield "| --- | --- | --- | --- |"
    for row in trace.ranking[:rows]:
        ceiling = "-" if row.ceiling is None else f"{row.ceiling:.3g}"
        yield f"| {row.name[:_NAME_LENGTH].replace('|', '/')} | {row.share:.0%} | {ceiling} | {row.attack} |"


def _notes(trace: Trace) -> Iterator[str]:
    for note in trace.notes:
        yield f"- {note}"
