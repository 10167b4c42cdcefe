"""Timeline of a kernel's phases: a bar each, from its median start over its median length."""

from __future__ import annotations

from warpsmith.lab.workers.phase_times import PhaseTimes
from warpsmith.reporting import format

_WIDTH = 40


def format_timeline(title: str, times: PhaseTimes, kind: str) -> str:
    """Format phases as lines of text, with their share, median, 10th and 90th percentile.

    Args:
        title: first line.
        times: the phases.
        kind: `cpu` or `gpu`, which decides how blocks are called.
    """
    block, unit = ("block", "multiprocessor") if kind == "gpu" else ("run", "thread")
    end = max(phase.start + phase.median for phase in times.phases) or 1.0
    names = max(len(phase.name) for phase in times.phases)
    count = max(phase.blocks for phase in times.phases)
    lines = [f"{title}: {format.count_noun(count, block)} on {format.count_noun(times.units, unit)}"]
    for phase in times.phases:
        first = round(_WIDTH * phase.start / end)
        length = max(1, round(_WIDTH * phase.median / end))
        bar = (" " * first + "#" * length)[:_WIDTH].ljust(_WIDTH)
        spread = f"{_duration(phase.low)} .. {_duration(phase.high)}"
        numbers = f"{format.percent(phase.share):>5}  {_duration(phase.median):>8}  ({spread})"
        lines.append(f"  {phase.name.ljust(names)}  |{bar}|  {numbers}")
    return "\n".join(lines)


def _duration(nanoseconds: float) -> str:
    return format.seconds(nanoseconds * 1e-9)
