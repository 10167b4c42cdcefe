"""The profiler's contract: what limits a version, why, and at most three things to try."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256
from warpsmith.core.evaluation import Resources

Bottleneck = Literal["memory", "compute", "latency", "launch", "at-the-limit"]


class Metric(Model):
    """One measured value."""

    name: str
    """A name of `METRICS`."""
    value: float
    """The value in the metric's unit."""


class Stage(Model):
    """One row of the stage table."""

    name: str
    """Kernel or workload."""
    seconds: float = Field(gt=0)
    """Time a call."""
    tensor_pct: float | None = None
    """Tensor-core utilisation; null without counters."""
    dram_pct: float | None = None
    """Bandwidth over the measured ceiling; with counters, DRAM traffic over its peak."""
    occupancy_pct: float | None = None
    """Achieved occupancy; null without counters."""
    bottleneck: Bottleneck
    """The row's class."""
    issue: str
    """The key issue in a few words."""


class Opportunity(Model):
    """One thing to try."""

    name: str
    """What to do."""
    gain_pct: float = Field(ge=0)
    """Estimated gain in percent of time saved over all."""
    trigger: Metric
    """The measured value that suggests it."""
    entry: str | None = None
    """The knowledge entry that says how."""


class Profile(Model):
    """A profile summary."""

    version: str
    """`v3`."""
    language: str
    """Language of the solution."""
    solution_sha256: Sha256
    """Hash of the file that was profiled."""
    evidence: Literal["counters", "timings", "static"]
    """What it rests on: hardware counters, timings only, or compile and arithmetic only."""
    stages: tuple[Stage, ...]
    """The stage table, the slowest first."""
    bottleneck: Bottleneck
    """The class of the whole."""
    root_cause: str = Field(max_length=400)
    """At most two sentences."""
    opportunities: Annotated[tuple[Opportunity, ...], Field(max_length=3)]
    """Ranked by estimated gain."""
    metrics: tuple[Metric, ...]
    """Every value behind it."""
    without: str = ""
    """What would be known with a higher level of evidence."""
    advice: tuple[str, ...] = ()
    """What the profiler's own rules say, quoted: `ncu CPIStall: Long Scoreboard Stalls, est. 39 %`."""
    workload: str = ""
    """The workload whose counters were read; empty where none were."""
    details: str = ""
    """The file with every counter; empty where there is none."""
    measured: Minute
    """When, in UTC."""

    def value(self, metric: str) -> float | None:
        """The value of one metric, if it was measured."""
        return next((m.value for m in self.metrics if m.name == metric), None)


class Point(Model):
    """One workload as it was observed."""

    workload: str
    """Its name."""
    seconds: float = Field(gt=0)
    """Median time a call."""
    floor_seconds: float = Field(gt=0)
    """The roofline's floor."""
    memory_seconds: float = Field(ge=0)
    """Time to move the algorithmic bytes at the measured ceiling."""
    compute_seconds: float = Field(ge=0)
    """Time to do the algorithmic operations at the ceiling; 0 where that is unknown."""
    bytes: float = Field(gt=0)
    """Algorithmic bytes."""


class Observations(Model):
    """What the lab can see without counters: the raw material of a profile."""

    version: str
    """`v3`."""
    language: str
    """Its language."""
    solution_sha256: Sha256
    """Hash of the file that was observed."""
    kind: Literal["gpu", "cpu"]
    """The target's kind."""
    points: Annotated[tuple[Point, ...], Field(min_length=1)]
    """The timed workloads."""
    sweep: tuple[Point, ...] = ()
    """The largest workload at fractions of its first axis, the largest first; empty where it has none."""
    cores: int
    """Cores in use on a CPU."""
    one_thread_seconds: float | None = None
    """The largest workload on one thread (CPU)."""
    host_seconds: float | None = None
    """What a call costs the host beyond the device's time, at the smallest workload (GPU)."""
    resources: tuple[Resources, ...] = ()
    """The compiler's report."""
    measured: Minute
    """When, in UTC."""

    @property
    def largest(self) -> Point:
        """The workload that moves the most bytes."""
        return max(self.points, key=lambda point: point.bytes)

    @property
    def smallest(self) -> Point:
        """The workload that moves the fewest bytes."""
        return min(self.points, key=lambda point: point.bytes)
