"""Profile of a version: its bottleneck, the cause, and at most three things to try."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256
from warpsmith.core.evaluation import Resources

Bottleneck = Literal["memory", "compute", "latency", "launch", "at-the-limit"]


class Metric(Model):
    """One measured value of a metric."""

    name: str
    """Name of the metric, from `METRICS`."""
    value: float
    """Value in the metric's unit."""


class Stage(Model):
    """One row of the stage table."""

    name: str
    """Name of the kernel or workload."""
    seconds: float = Field(gt=0)
    """Time of a call in seconds."""
    tensor_pct: float | None = None
    """Tensor-core utilization; null without counters."""
    dram_pct: float | None = None
    """Bandwidth over the measured ceiling; with counters, DRAM traffic over its peak."""
    occupancy_pct: float | None = None
    """Achieved occupancy; null without counters."""
    bottleneck: Bottleneck
    """Class of the row's bottleneck."""
    issue: str
    """Main issue in a few words."""


class Opportunity(Model):
    """One possible optimization."""

    name: str
    """Optimization, in a few words."""
    gain_pct: float = Field(ge=0)
    """Estimated saving in percent of the total time."""
    trigger: Metric
    """Measured value that suggests it."""
    entry: str | None = None
    """Id of the knowledge entry with instructions."""


class Profile(Model):
    """Profile of one version."""

    version: str
    """Name of the version, such as `v3`."""
    language: str
    """Language of the solution."""
    solution_sha256: Sha256
    """SHA-256 of the profiled file."""
    evidence: Literal["counters", "timings", "static"]
    """Level of evidence: hardware counters, timings only, or compile and arithmetic only."""
    stages: tuple[Stage, ...]
    """Rows of the stage table, the slowest first."""
    bottleneck: Bottleneck
    """Class of the bottleneck of the whole version."""
    root_cause: str = Field(max_length=400)
    """Root cause in at most two sentences."""
    opportunities: Annotated[tuple[Opportunity, ...], Field(max_length=3)]
    """Possible optimizations, ranked by estimated gain."""
    metrics: tuple[Metric, ...]
    """All measured values."""
    without: str = ""
    """Values that a higher level of evidence would add."""
    advice: tuple[str, ...] = ()
    """Findings of the profiler's own rules: `ncu CPIStall: Long Scoreboard Stalls, est. 39 %`."""
    workload: str = ""
    """Workload whose counters were read; empty without counters."""
    details: str = ""
    """Path of the file with all counters; empty if there is none."""
    load: str = ""
    """Other processes that used the CPU while it was timed; empty if the machine was idle."""
    measured: Minute
    """Time of the measurement, in UTC."""

    def value(self, metric: str) -> float | None:
        """Return the value of one metric, if it was measured."""
        return next((m.value for m in self.metrics if m.name == metric), None)


class Point(Model):
    """Observation of one workload."""

    workload: str
    """Name of the workload."""
    seconds: float = Field(gt=0)
    """Median time of a call in seconds."""
    floor_seconds: float = Field(gt=0)
    """Roofline floor in seconds."""
    memory_seconds: float = Field(ge=0)
    """Time to move the algorithmic bytes at the measured ceiling, in seconds."""
    compute_seconds: float = Field(ge=0)
    """Time to do the algorithmic operations at the ceiling, in seconds; 0 if that is unknown."""
    bytes: float = Field(gt=0)
    """Number of algorithmic bytes."""


class Observations(Model):
    """Observations of the lab without counters, from which a profile is made."""

    version: str
    """Name of the version, such as `v3`."""
    language: str
    """Language of the version."""
    solution_sha256: Sha256
    """SHA-256 of the observed file."""
    kind: Literal["gpu", "cpu"]
    """Kind of target."""
    points: Annotated[tuple[Point, ...], Field(min_length=1)]
    """Observations of the timed workloads."""
    sweep: tuple[Point, ...] = ()
    """The largest workload at fractions of its first axis, the largest first; empty if it has none."""
    cores: int
    """Number of cores in use on a CPU."""
    one_thread_seconds: float | None = None
    """Time of the largest workload on one thread, in seconds (CPU); null if other processes used the cores."""
    host_seconds: float | None = None
    """Host time of a call beyond the device's time at the smallest workload, in seconds (GPU)."""
    resources: tuple[Resources, ...] = ()
    """Resources in the compiler's report."""
    load: str = ""
    """Other processes that used the CPU meanwhile; empty if the machine was idle."""
    measured: Minute
    """Time of the measurement, in UTC."""

    @property
    def largest(self) -> Point:
        """Workload that moves the most bytes."""
        return max(self.points, key=lambda point: point.bytes)

    @property
    def smallest(self) -> Point:
        """Workload that moves the fewest bytes."""
        return min(self.points, key=lambda point: point.bytes)
