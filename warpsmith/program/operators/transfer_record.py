"""Transfer: what a kernel's gain is worth in a program, and which part of it only a benchmark would see."""

from __future__ import annotations

from math import hypot
from typing import Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name, Positive
from warpsmith.core.evaluation import Comparison

LEAST_RESIDUAL = 0.01
"""A residual below this share of the reference's time is none."""

STANDARD_ERRORS = 3.0
"""Standard errors that a residual must exceed to be one."""

_HIDDEN = 0.5
"""A kept result saves nearly all of the kernel's time: noise that could hide this share of it tells nothing."""

_LEAST_SHARE = 0.01
"""A kernel that takes less of the step than this has nothing worth keeping."""


class Gain(Model):
    """Seconds that a call of the kernel takes less than the reference; below 0 where it takes more."""

    seconds: float
    """The gain."""
    error: float = Field(ge=0)
    """Its standard error."""

    def minus(self, other: Gain) -> Gain:
        """The difference of two gains that were measured apart."""
        return Gain(seconds=self.seconds - other.seconds, error=hypot(self.error, other.error))


class WorkloadTransfer(Model):
    """One workload: the gain of a call, where more and more of its inputs repeat."""

    workload: str
    """Its name in the definition."""
    calls: Positive
    """Calls a step of the program."""
    reference_seconds: Positive
    """PyTorch's own operator on fresh inputs."""
    seconds: Positive
    """The kernel on fresh inputs."""
    fresh: Gain
    """All inputs are new at each call, the weights too."""
    weights: Gain
    """The weights stay the same, all else is new."""
    same: Gain
    """Nothing changes."""
    judged: float | None = None
    """The gain of a call in the version's record; null: this workload was not timed there."""

    @property
    def real(self) -> Gain:
        """What every call gains."""
        return self.fresh

    @property
    def weight_cache(self) -> Gain:
        """What is gained only because weights stay the same."""
        return self.weights.minus(self.fresh)

    @property
    def residual(self) -> Gain:
        """What is gained only because all inputs repeat: in a program they never do."""
        return self.same.minus(self.weights)

    @property
    def told(self) -> bool:
        """Whether a kept result would have shown above the noise."""
        return detects_kept_result(self.residual.error, self.seconds)

    @property
    def inflated(self) -> bool:
        """Whether there is such a gain, beyond noise."""
        return is_inflated(self.residual, self.reference_seconds)


class Transfer(Model):
    """The audit of one kernel in one program: `trials/<NNN>/transfer.json`."""

    op: Name
    """The definition."""
    operator: str
    """PyTorch's operator that it replaces."""
    solution: str
    """The version: `triton/v7`."""
    device: str
    """Where it ran."""
    step_seconds: Positive
    """A step of the program without the kernel."""
    workloads: tuple[WorkloadTransfer, ...] = Field(min_length=1)
    """What the program calls."""
    measured: Comparison | None = None
    """The whole step with the kernel against the one without; null: it was not measured."""

    @model_validator(mode="after")
    def _once(self) -> Self:
        names = [one.workload for one in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError("a workload is there twice")
        return self

    @property
    def real(self) -> Gain:
        """What a step gains by the calls' real gains."""
        return self._step([one.real for one in self.workloads])

    @property
    def weight_cache(self) -> Gain:
        """What a step gains besides where weights stay the same between calls."""
        return self._step([one.weight_cache for one in self.workloads])

    @property
    def residual(self) -> Gain:
        """What a benchmark would see besides, and a step never."""
        return self._step([one.residual for one in self.workloads])

    @property
    def inflated(self) -> tuple[WorkloadTransfer, ...]:
        """The workloads with a gain that does not transfer."""
        return tuple(one for one in self.workloads if one.inflated)

    @property
    def untold(self) -> tuple[WorkloadTransfer, ...]:
        """The workloads where noise could hide a kept result that matters to the step."""
        least = _LEAST_SHARE * self.step_seconds
        return tuple(one for one in self.workloads if not one.told and one.calls * one.seconds > least)

    @property
    def judged_seconds(self) -> float | None:
        """What a step would gain if its calls ran as in the version's record; null where that lacks a workload."""
        gains = [one.judged for one in self.workloads if one.judged is not None]
        if len(gains) < len(self.workloads):
            return None
        return sum(one.calls * gain for one, gain in zip(self.workloads, gains, strict=True))

    @property
    def predicted(self) -> float | None:
        """The step's speedup that follows from the real gain; null: more than the whole step would be gained."""
        return speedup_from_gain(self.step_seconds, self.real.seconds)

    @property
    def measured_seconds(self) -> float | None:
        """What the step gained; null: it was not measured."""
        if self.measured is None:
            return None
        return self.measured.other_seconds * (1 - 1 / self.measured.speedup)

    def _step(self, gains: list[Gain]) -> Gain:
        calls = [one.calls for one in self.workloads]
        return Gain(
            seconds=sum(count * one.seconds for count, one in zip(calls, gains, strict=True)),
            error=hypot(*(count * one.error for count, one in zip(calls, gains, strict=True))),
        )


def is_inflated(residual: Gain, reference_seconds: float) -> bool:
    """Whether a gain that only repeated inputs give is more than noise, of calls that take PyTorch's so long."""
    return residual.seconds > max(LEAST_RESIDUAL * reference_seconds, STANDARD_ERRORS * residual.error)


def detects_kept_result(error: float, seconds: float) -> bool:
    """Whether a residual of this standard error would show that a kernel of these seconds keeps its results."""
    return STANDARD_ERRORS * error <= _HIDDEN * seconds


def speedup_from_gain(step_seconds: float, gain_seconds: float) -> float | None:
    """The speedup of a step that becomes shorter by the gain; None: nothing of it would be left."""
    return None if gain_seconds >= step_seconds else step_seconds / (step_seconds - gain_seconds)
