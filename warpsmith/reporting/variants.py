"""Lines of `warpsmith try`: one for each variant, printed as soon as its result is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.core.evaluation import COMPILED, NULL, Aggregate, Resources
from warpsmith.lab.tuning.workbench import VariantResult
from warpsmith.reporting import format

_GAP = "  "
_TIME_WIDTH = 14
_SPEEDUP_WIDTH = 24
_LONGEST_MESSAGE = 400
_IMPOSSIBLE = 1.25
"""Share of the ceiling that no call reaches. Chosen: caches and clocks explain a tenth above it."""


class VariantLines:
    """Columns that fit all variants and workloads."""

    def __init__(self, variants: Sequence[str], floors: Mapping[str, float | None], anchor: str) -> None:
        """Fix the columns.

        Args:
            variants: names of all variants.
            floors: workload to its roofline floor in seconds; None if no ceiling is known.
            anchor: side that the variants are compared with.
        """
        self._floors, self._anchor = floors, anchor
        self.launch_seconds: Mapping[str, float] = {}
        """Workload to the null kernel's seconds; shares are of the greater of it and the floor."""
        self._first = max(map(len, (*variants, anchor, NULL, COMPILED)))
        self._widths = [max(_TIME_WIDTH, len(workload)) for workload in floors]

    def header(self) -> str:
        """Return the names of the columns, and below them the floors."""
        names = self._row("variant", list(self._floors), f"over {self._anchor}", "regs, spill, shared")
        return f"{names}\n{self._row('floor', [format.seconds(floor) for floor in self._floors.values()])}"

    def line(self, result: VariantResult) -> str:
        """Return the line of one result."""
        if result.state != "timed":
            message = f"{result.state}: {result.message}" if result.message else result.state
            text = " ".join(message.split())[:_LONGEST_MESSAGE]
            resources = _resources(result.resources) if result.state == "correct" else ""
            return f"{result.variant.ljust(self._first)}{_GAP}{text}{_GAP if resources else ''}{resources}"
        interval = f" {format.interval(result.interval)}" if result.interval else ""
        speedup = f"{format.factor(result.speedup)}{interval}"
        times = [self._time(workload, result.seconds) for workload in self._floors]
        return self._row(result.variant, times, speedup, _resources(result.resources))

    def below_floor_line(self, result: VariantResult) -> str:
        """Return a line on workloads that a variant computes faster than their bytes can move; empty if none."""
        names = [
            workload
            for workload, floor in self._floors.items()
            if floor and floor > _IMPOSSIBLE * result.seconds.get(workload, floor)
        ]
        if not names:
            return ""
        return (
            f"far below the floor: {', '.join(names)}; the definition counts more than a call needs: look at"
            " `bytes_read`, `flops` and the integers that `warpsmith check` says are drawn"
        )

    def baseline_line(self, name: str, seconds: Mapping[str, float], mean: Aggregate) -> str:
        """Return the line of a baseline, with the speedup of the fastest variant over it."""
        times = [self._time(workload, seconds) for workload in self._floors]
        return f"{self._row(name, times)}{_GAP}fastest over it: {format.speedup(mean)}"

    def anchor_line(self, seconds: Mapping[str, float]) -> str:
        """Return the line of the side that the variants are compared with."""
        return self._row(self._anchor, [self._time(workload, seconds) for workload in self._floors], "1.00x")

    def null_line(self) -> str:
        """Return the null kernel's line; `bound` marks workloads whose floor it is."""
        return self._row(NULL, [self._null_time(workload, floor) for workload, floor in self._floors.items()])

    def _null_time(self, workload: str, floor: float | None) -> str:
        if workload not in self.launch_seconds:
            return "-"
        seconds = self.launch_seconds[workload]
        return f"{format.seconds(seconds)}{' bound' if floor and seconds >= floor else ''}"

    def _time(self, workload: str, seconds: Mapping[str, float]) -> str:
        if workload not in seconds:
            return "-"
        floor = self._floors[workload]
        if floor:
            floor = max(floor, self.launch_seconds.get(workload, 0.0))
        share = f" {format.percent(floor / seconds[workload])}" if floor else ""
        return f"{format.seconds(seconds[workload])}{share}"

    def _row(self, first: str, times: Sequence[str], speedup: str = "", resources: str = "") -> str:
        cells = [first.ljust(self._first), *(text.rjust(w) for text, w in zip(times, self._widths, strict=True))]
        return _GAP.join([*cells, speedup.ljust(_SPEEDUP_WIDTH), resources]).rstrip()


def _resources(resources: Sequence[Resources]) -> str:
    """Return registers, spilled bytes and shared bytes of the kernel with the most registers."""
    reported = [kernel for kernel in resources if kernel.registers is not None]
    if not reported:
        return ""
    largest = max(reported, key=lambda kernel: kernel.registers or 0)
    more = f" ({len(reported)} kernels)" if len(reported) > 1 else ""
    return f"{largest.registers}, {largest.spill_bytes or 0} B, {largest.shared_bytes or 0} B{more}"
