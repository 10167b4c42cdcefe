"""Race: the best version beside the reference and every peer, workload by workload, each result checked."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name, Slug
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Aggregate, Correctness, Provenance, Status, Timing

RACE_VERSION = 1
"""Version of the record's form."""

Mode = Literal["eager", "graph"]
"""How calls are launched: one by one by the host, or replayed from a CUDA graph."""

Near = Literal["NEAR"]
NEAR: Final = "NEAR"
"""State of a side that rounds otherwise than the definition allows versions to: it is timed, and marked."""


class RaceSide(Model):
    """One side at one workload: whether it is right, and what a call costs beside time."""

    side: str
    """`solution`, `reference`, `torch.compile` or a peer's name."""
    status: Status | Near
    """How it fared; only a side that passed or is near is timed."""
    message: str = ""
    """One sentence where it did not pass; where it is near, the first element beyond its bound."""
    correctness: Correctness | None = None
    """How far its outputs were from the float64 reference; null where nothing was graded."""
    differs: str = ""
    """What it does otherwise than the operator, as its definition's file declares; empty: nothing."""
    uncaptured: str = ""
    """Why it is in no CUDA graph; empty where it is, or on a CPU."""
    joules: float | None = Field(default=None, ge=0)
    """Energy of one call, the whole board's; null where it was not measured."""
    joules_mode: Mode | None = None
    """How its calls were launched while the energy was read; null where it was not."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.status is not Status.PASSED and not self.message:
            raise ValueError("a side that did not pass must say why")
        if self.near and self.correctness is None:
            raise ValueError("a side that is near must say by how much")
        return self

    @property
    def near(self) -> bool:
        """Whether it rounds otherwise."""
        return self.status == NEAR

    @property
    def timed(self) -> bool:
        """Whether its results let it be timed."""
        return self.status is Status.PASSED or self.near


class RaceResult(Model):
    """One workload."""

    workload: str
    """Its name."""
    set: WorkloadSet
    """Its set."""
    sides: tuple[RaceSide, ...]
    """Every side, those that failed among them."""
    eager: Timing
    """The version's times, launched call by call, with its comparisons to every other side that was timed."""
    graph: Timing | None = None
    """The same out of CUDA graphs, with the sides that could be captured; null on a CPU."""

    def timing(self, mode: Mode) -> Timing | None:
        """The times of a mode."""
        return self.eager if mode == "eager" else self.graph

    def near(self, side: str) -> bool:
        """Whether a side rounds otherwise here."""
        return any(one.side == side and one.near for one in self.sides)


class RaceRecord(Model):
    """`devlog/<op>/races/<NNN>-<target>/record.json`: written once."""

    race_version: int = RACE_VERSION
    """Version of this form."""
    definition: Name
    """The operator."""
    solution: str
    """The version that raced, as `triton/v7`."""
    target: Slug
    """The device kind."""
    provenance: Provenance
    """What it can be traced by."""
    results: tuple[RaceResult, ...] = Field(min_length=1)
    """One a workload, in the definition's order."""
    aggregates: dict[Mode, tuple[Aggregate, ...]]
    """Geometric means over the workloads, against each side that was timed at all of them, by mode."""
    absent: dict[str, str] = {}
    """Peers that are not installed, with how to install them."""
    notes: tuple[str, ...] = ()
    """What a reader of the times must know."""

    def near(self, side: str) -> bool:
        """Whether a side rounds otherwise at any workload."""
        return any(result.near(side) for result in self.results)
