"""Record of false wins: how often an operator that was judged against itself was accepted, on one machine."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Minute, Model, Positive, Sha256
from warpsmith.core.hardware import Machine

RATE = 0.02
"""Share of A/A judgements that may end in an acceptance, as Warpsmith states."""


class FalseWins(Model):
    """Result of `warpsmith aa`."""

    machine: Machine
    """Machine of the judgements."""
    gate_version: int
    """Version of the gate that judged."""
    lab_sha256: Sha256
    """Hash of the lab's code."""
    measured: Minute
    """Time of the last judgement, in UTC."""
    runs: int = Field(ge=1)
    """Number of A/A judgements."""
    accepted: int = Field(ge=0)
    """Judgements that accepted the same code as an improvement: false wins."""
    regressions: int = Field(ge=0)
    """Judgements that rolled it back because a workload looked slower by the regression threshold."""
    ambiguous: int = Field(ge=0)
    """Judgements that repetition did not settle; they end as a rollback."""
    none: int = Field(ge=0)
    """Judgements that saw no difference."""
    upper: float
    """Upper end of the exact 95 % interval of the share of false wins."""
    stated: Positive
    """Stated share; a larger one is a defect."""
    floor: float | None
    """A/A floor in force; null if none was measured."""
    largest_gain: float
    """Largest geometric-mean gain in a judgement."""
    how: str
    """Description of the operator and its sizes."""
    finished: bool = True
    """True if all requested judgements are in; false while the command runs, or if it was killed."""

    @property
    def share(self) -> float:
        """Share of false wins among the judgements."""
        return self.accepted / self.runs

    @property
    def within_rate(self) -> bool:
        """True if the share is at most the stated one."""
        return self.share <= self.stated
