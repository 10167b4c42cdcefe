"""Race: the best version timed against the reference and all peers, with a correctness check of each side."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name, Slug
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Aggregate, Correctness, Provenance, Status, Timing

RACE_VERSION = 1
"""Version of the record's format."""

Mode = Literal["eager", "graph"]
"""Launch mode of calls: one by one by the host, or replayed from a CUDA graph."""

Near = Literal["NEAR"]
NEAR: Final = "NEAR"
"""Status of a side that rounds differently than the definition allows; it is timed, and marked."""


class RaceSide(Model):
    """One side at one workload: its correctness, and its costs other than time."""

    side: str
    """Name of the side: `solution`, `reference`, `torch.compile` or a peer."""
    status: Status | Near
    """Outcome; only a side that passed or is near is timed."""
    message: str = ""
    """Reason in one sentence if it did not pass; if it is near, the first element beyond its bound."""
    correctness: Correctness | None = None
    """Errors of its outputs against the float64 reference; null if nothing was graded."""
    differs: str = ""
    """Difference from the operator, as the definition's file declares it; empty if there is none."""
    uncaptured: str = ""
    """Reason why it was not captured in a CUDA graph; empty if it was, or on a CPU."""
    host_seconds: float | None = Field(default=None, ge=0)
    """Seconds until an eager call returns while nothing waits for the device; null on a CPU and before."""
    joules: float | None = Field(default=None, ge=0)
    """Energy of one call of the whole board, in joules; null if it was not measured."""
    joules_mode: Mode | None = None
    """Launch mode of its calls while the energy was read; null if it was not."""

    @model_validator(mode="after")
    def _check_reason(self) -> Self:
        if self.status is not Status.PASSED and not self.message:
            raise ValueError("a side that did not pass must say why")
        if self.near and self.correctness is None:
            raise ValueError("a side that is near must say by how much")
        return self

    @property
    def near(self) -> bool:
        """True if it rounds differently."""
        return self.status == NEAR

    @property
    def timed(self) -> bool:
        """True if its results are good enough to be timed."""
        return self.status is Status.PASSED or self.near


class RaceResult(Model):
    """Results of one workload."""

    workload: str
    """Name of the workload."""
    set: WorkloadSet
    """Set of the workload."""
    sides: tuple[RaceSide, ...]
    """Every side, including failed ones."""
    eager: Timing
    """Times of the version, launched call by call, with comparisons to every other timed side."""
    graph: Timing | None = None
    """Times from CUDA graphs, with the sides that could be captured; null on a CPU."""

    def timing(self, mode: Mode) -> Timing | None:
        """Return the times of a mode."""
        return self.eager if mode == "eager" else self.graph

    def near(self, side: str) -> bool:
        """Return whether a side rounds differently at this workload."""
        return any(other.side == side and other.near for other in self.sides)


class RaceRecord(Model):
    """Record of a race, `devlog/<op>/races/<NNN>-<target>/record.json`, written after each workload."""

    race_version: int = RACE_VERSION
    """Version of this format."""
    definition: Name
    """Name of the operator."""
    solution: str
    """Version that raced, as `triton/v7`."""
    target: Slug
    """Kind of device."""
    provenance: Provenance
    """Origin of the results."""
    results: tuple[RaceResult, ...] = Field(min_length=1)
    """One result for each workload, in the definition's order."""
    aggregates: dict[Mode, tuple[Aggregate, ...]]
    """Geometric means over the workloads by mode, against each side that was timed at all of them."""
    absent: dict[str, str] = {}
    """Peers that are not installed, with installation instructions."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the times."""
    unraced: tuple[str, ...] = ()
    """Workloads that the race was ended before."""

    def near(self, side: str) -> bool:
        """Return whether a side rounds differently at any workload."""
        return any(result.near(side) for result in self.results)
