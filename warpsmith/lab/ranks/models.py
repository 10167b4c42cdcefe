"""Record of a judgement over ranks."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name, Positive
from warpsmith.core.evaluation import Aggregate, Comparison, Decision, Provenance, Status, WorkloadResult
from warpsmith.core.trust import Check


class RankTiming(Model):
    """Times of one workload: of the slowest rank, from a common start."""

    seconds: Positive
    """Median time of a call in seconds, by the grader's clock or by the GPUs' clocks."""
    samples: int = Field(ge=2)
    """Number of timed blocks of calls."""
    spread: float = Field(ge=0)
    """Interquartile range over the median."""
    issued_ahead: bool | None = None
    """True if every block on GPUs began when all ranks had issued all of its calls, so that no time of the host is
    in it; null on a processor."""
    comparison: Comparison | None = None
    """Comparison with the version that it had to beat; null if there was none."""


class RankEvaluation(Model):
    """One judgement of a version over ranks."""

    definition: Name
    """Name of the operator."""
    ranks: int = Field(ge=2)
    """Number of ranks."""
    backend: Literal["gloo", "nccl"] = "gloo"
    """Way in which ranks reach each other."""
    devices: tuple[str, ...] = ()
    """Name of each rank's GPU; empty on a processor."""
    uuids: tuple[str, ...] = ()
    """UUID of each rank's GPU."""
    nccl: str = ""
    """Version of NCCL."""
    link: str = ""
    """Links between the GPUs, as `nvidia-smi topo -m` abbreviates them; empty if it does not say."""
    provenance: Provenance
    """Origin of the result."""
    trust: tuple[Check, ...]
    """Protections that were and were not in force."""
    results: tuple[WorkloadResult, ...]
    """One result for each workload that was run, over all ranks."""
    times: dict[str, RankTiming] = {}
    """Times by name of the workload; empty unless all workloads passed."""
    aggregate: Aggregate | None = None
    """Mean against the version that it had to beat; null if there was none."""
    floor: float | None = None
    """Noise floor that was applied; null if nothing was compared."""
    decision: Decision | None = None
    """Verdict with its reason; null if only correctness was checked, and passed."""

    @model_validator(mode="after")
    def _fits_verdict(self) -> Self:
        if self.decision is None and not self.correct:
            raise ValueError("a version that failed has a verdict")
        if self.decision is not None and self.decision.verdict.accepted and not (self.correct and self.times):
            raise ValueError("an accepted version must have passed every workload and been timed")
        return self

    @property
    def correct(self) -> bool:
        """True if every workload that was run passed, and at least one was run."""
        return bool(self.results) and all(result.status is Status.PASSED for result in self.results)
