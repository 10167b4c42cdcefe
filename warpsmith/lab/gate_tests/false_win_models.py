"""Record of false wins: how often an operator that was judged against itself was accepted, on one machine."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from warpsmith.core.base import Minute, Model, Positive, Sha256
from warpsmith.core.hardware import Machine

RATE = 0.02
"""Share of A/A judgements that may end in an acceptance, as Warpsmith states."""

Outcome = Literal["accepted", "regressions", "ambiguous", "none"]
"""Outcome of an A/A judgement, named as the field that counts it."""


class IdenticalJudgement(Model):
    """One A/A judgement."""

    device: str
    """UUID of the GPU that it was made on, or `cpu`."""
    outcome: Outcome
    """Its outcome."""
    gain: float
    """Geometric-mean gain that it measured."""


class OutcomeCounts(Model):
    """Outcomes of A/A judgements, counted."""

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
    floor: float | None
    """A/A floor in force, of several devices the largest; null if none was measured."""
    largest_gain: float
    """Largest geometric-mean gain in a judgement."""


class DeviceCounts(OutcomeCounts):
    """A/A judgements of one device."""

    machine: Machine
    """The machine, with this device."""


class FalseWins(OutcomeCounts):
    """Result of `warpsmith aa`."""

    machine: Machine
    """Machine of the judgements, with the first device."""
    gate_version: int
    """Version of the gate that judged."""
    lab_sha256: Sha256
    """Hash of the lab's code."""
    measured: Minute
    """Time of the last judgement, in UTC."""
    stated: Positive
    """Stated share; a larger one is a defect."""
    how: str
    """Description of the operator and its sizes."""
    devices: tuple[DeviceCounts, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Judgements by device; absent in records made before they were counted so."""
    judgements: tuple[IdenticalJudgement, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Each judgement, in the order in which they ended; absent in records made before they were kept."""
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
