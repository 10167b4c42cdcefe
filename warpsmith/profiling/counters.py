"""Counters: what a profiler's report says of each kernel launch, in Warpsmith's vocabulary."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Model


class Advice(Model):
    """One finding of the tool's own rules, quoted beside ours."""

    rule: str
    """The rule's name."""
    title: str
    """What it found, in its words."""
    speedup_pct: float | None = None
    """The speedup that it estimates, percent; null where it gives none."""


class Launch(Model):
    """One kernel launch."""

    index: int = Field(ge=0)
    """Its place in the report."""
    kernel: str
    """The kernel's name."""
    device: str
    """The device's name as the tool gives it; empty where it does not."""
    architecture: str
    """`sm_90`, `gfx942`; empty where the tool does not say."""
    grid: tuple[int, int, int]
    """Blocks in each direction; zeros where the report does not say."""
    block: tuple[int, int, int]
    """Threads in each direction; zeros where the report does not say."""
    seconds: float = Field(gt=0)
    """Time on the device while it was profiled; not a benchmark."""
    values: dict[str, float]
    """Values by name of `warpsmith.core.metrics.METRICS`."""
    absent: tuple[str, ...] = ()
    """Names of the vocabulary whose counters the report lacks or gives as NaN."""
    advice: tuple[Advice, ...] = ()
    """What the tool's own rules say."""


class Counters(Model):
    """A report, read."""

    tool: Literal["ncu", "rocprofv3"]
    """What made it."""
    report: str
    """Its file, relative to the project where it lies in it."""
    sha256: str
    """Hash of the report's file."""
    launches: tuple[Launch, ...] = Field(min_length=1)
    """In the report's order."""

    @property
    def hottest(self) -> Launch:
        """The launch that took the most time."""
        return max(self.launches, key=lambda launch: launch.seconds)
