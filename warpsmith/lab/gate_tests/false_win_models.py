"""FalseWins: how often an operator judged against itself came out as better, on one machine."""

from __future__ import annotations

from pydantic import Field

from warpsmith.core.base import Minute, Model, Positive, Sha256
from warpsmith.core.hardware import Machine

RATE = 0.02
"""The share of A/A judgements that may end in an acceptance: what Warpsmith states of itself."""


class FalseWins(Model):
    """What `warpsmith aa` found."""

    machine: Machine
    """Where."""
    gate_version: int
    """The rules that decided."""
    lab_sha256: Sha256
    """Hash of the lab's code."""
    measured: Minute
    """When, in UTC."""
    runs: int = Field(ge=1)
    """A/A judgements."""
    accepted: int = Field(ge=0)
    """Those that called the same code an improvement: false wins."""
    regressions: int = Field(ge=0)
    """Those that rolled it back for a workload that looked slower by the regression threshold."""
    ambiguous: int = Field(ge=0)
    """Those that repetition did not settle; they end as a rollback."""
    none: int = Field(ge=0)
    """Those that saw no difference."""
    upper: float
    """Upper end of the exact 95 % interval of the false wins' share."""
    stated: Positive
    """The share that is stated: more is a defect."""
    floor: float | None
    """The A/A floor that was in force."""
    largest_gain: float
    """The largest geometric-mean gain that was seen."""
    how: str
    """What was judged."""
    finished: bool = True
    """Whether these are all judgements that were asked for; false: the command is at work, or was ended."""

    @property
    def share(self) -> float:
        """False wins over judgements."""
        return self.accepted / self.runs

    @property
    def kept(self) -> bool:
        """Whether the stated rate was kept."""
        return self.share <= self.stated
