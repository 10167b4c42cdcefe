"""Counters of each kernel launch in a profiler's report, under Warpsmith's metric names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model


class Advice(Model):
    """One finding of the profiler's own rules, quoted next to ours."""

    rule: str
    """Name of the rule."""
    title: str
    """The finding, in the tool's words."""
    speedup_pct: float | None = None
    """Estimated speedup in percent; null if the rule gives none."""


class Launch(Model):
    """One kernel launch with its values."""

    index: int = Field(ge=0)
    """Position in the report, from 0."""
    kernel: str
    """Name of the kernel."""
    device: str
    """Name of the device as the tool gives it; empty if it gives none."""
    architecture: str
    """Architecture such as `sm_90` or `gfx942`; empty if the tool gives none."""
    grid: tuple[int, int, int]
    """Blocks in each dimension; zeros if the report does not contain them."""
    block: tuple[int, int, int]
    """Threads of a block in each dimension; zeros if the report does not contain them."""
    seconds: float = Field(gt=0)
    """Device time in seconds while it was profiled; not a benchmark."""
    values: dict[str, float]
    """Value by metric name; the names are those of `warpsmith.core.metrics.METRICS`, and for AMD's tools also
    those of `warpsmith.profiling.rocprof.shares.SHARES`."""
    absent: tuple[str, ...] = ()
    """Names of metrics whose counters are missing or NaN in the report."""
    advice: tuple[Advice, ...] = ()
    """Findings of the tool's own rules."""


class Counters(Model):
    """The launches of one profiler report."""

    tool: Literal["ncu", "rocprofv3", "rocprof-compute"]
    """Profiler that wrote the report."""
    report: str
    """Path of the report, relative to the project if it lies inside."""
    sha256: str
    """SHA-256 of the report's file."""
    launches: tuple[Launch, ...] = Field(min_length=1)
    """Launches in the report's order."""

    @property
    def hottest(self) -> Launch:
        """Return the launch that took the most time."""
        return max(self.launches, key=lambda launch: launch.seconds)
