"""The profiler's contract: what limits a version, why, and at most three things to try."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Sha256
from warpsmith.core.evaluation import Resources

Bottleneck = Literal["memory", "compute", "latency", "launch", "at-the-limit"]

METRICS: dict[str, str] = {
    "dram_pct": "achieved bandwidth over the measured copy ceiling, percent",
    "compute_pct": "achieved arithmetic rate over the measured ceiling, percent",
    "ceiling_pct": "roofline floor over measured time, percent",
    "worst_ceiling_pct": "the same at the workload that is furthest behind, percent",
    "small_ceiling_pct": "the same at the smallest workload, percent",
    "tensor_pct": "tensor-core pipe utilisation, percent",
    "occupancy_pct": "achieved occupancy, percent",
    "l2_hit_pct": "L2 hit rate, percent",
    "registers_per_thread": "registers a thread",
    "shared_bytes": "shared memory a block, bytes",
    "spill_bytes": "local memory a thread used for spills, bytes",
    "sectors_per_request": "32-byte sectors a global memory request",
    "bank_conflicts": "shared-memory bank conflicts a request",
    "launch_count": "kernel launches a call",
    "host_overhead_us": "time a call costs beyond the kernels, microseconds",
    "time_us": "time a call, microseconds",
    "waves": "waves of blocks over the device",
    "traffic_amplification": "measured bytes over algorithmic bytes",
    "barrier_stall_pct": "stalls at barriers, percent of warp cycles",
    "long_scoreboard_pct": "stalls on global memory, percent of warp cycles",
    "thread_scaling": "time on one thread over time on all threads",
    "size_slope": "time a byte at the largest size over time a byte at the smallest",
    "vectorized_loops": "loops that the compiler vectorised",
    "missed_loops": "loops that the compiler could not vectorise",
    "accuracy": "largest error as a share of its bound",
}
"""The vocabulary that plans, profiles and knowledge entries share: name to meaning and unit."""


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
    """Bandwidth over the measured ceiling."""
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
