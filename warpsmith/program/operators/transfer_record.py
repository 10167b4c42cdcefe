"""Transfer: the value of a kernel's gain in a program, and the part of it that only a benchmark would show."""

from __future__ import annotations

from math import hypot
from typing import Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Name, Positive
from warpsmith.core.evaluation import Comparison

LEAST_RESIDUAL = 0.01
"""A residual below this share of the reference's time does not count."""

STANDARD_ERRORS = 3.0
"""Number of standard errors that a residual must exceed to count."""

_HIDDEN = 0.5
"""A reused result saves nearly all of the kernel's time: if noise could hide this share of it, the measurement is
inconclusive."""

_LEAST_SHARE = 0.01
"""Share of the step below which a reused result of the kernel does not matter."""


class Gain(Model):
    """Seconds by which a call of the kernel is shorter than the reference; negative if it is longer."""

    seconds: float
    """The gain in seconds."""
    error: float = Field(ge=0)
    """Standard error of the gain."""

    def minus(self, other: Gain) -> Gain:
        """Return the difference of two independently measured gains."""
        return Gain(seconds=self.seconds - other.seconds, error=hypot(self.error, other.error))


class WorkloadTransfer(Model):
    """One workload: the gain of a call when none, some or all of its inputs repeat."""

    workload: str
    """Name of the workload in the definition."""
    calls: Positive
    """Calls per step of the program."""
    reference_seconds: Positive
    """Seconds of a call of PyTorch's operator on fresh inputs."""
    seconds: Positive
    """Seconds of a call of the kernel on fresh inputs."""
    fresh: Gain
    """The gain if all inputs, also the weights, are new at each call."""
    weights: Gain
    """The gain if only the weights stay the same."""
    same: Gain
    """The gain if all inputs stay the same."""
    judged: float | None = None
    """The gain of a call in the version's record; null if this workload was not timed there."""

    @property
    def real(self) -> Gain:
        """Return the gain of every call."""
        return self.fresh

    @property
    def weight_cache(self) -> Gain:
        """Return the gain that exists only because weights stay the same."""
        return self.weights.minus(self.fresh)

    @property
    def residual(self) -> Gain:
        """Return the gain that exists only because all inputs repeat, which never happens in a program."""
        return self.same.minus(self.weights)

    @property
    def detectable(self) -> bool:
        """Return whether a reused result would have shown above the noise."""
        return detects_kept_result(self.residual.error, self.seconds)

    @property
    def inflated(self) -> bool:
        """Return whether the residual gain is real, beyond noise."""
        return is_inflated(self.residual, self.reference_seconds)


class Transfer(Model):
    """The audit of one kernel in one program: `trials/<NNN>/transfer.json`."""

    op: Name
    """The definition."""
    operator: str
    """The operator of PyTorch that it replaces."""
    solution: str
    """The version: `triton/v7`."""
    device: str
    """The device that it ran on."""
    step_seconds: Positive
    """Seconds per step of the program without the kernel."""
    workloads: tuple[WorkloadTransfer, ...] = Field(min_length=1)
    """The workloads that the program calls."""
    region: str = ""
    """Digest of the region that it replaces, which is timed as Inductor compiles it; empty for an operator."""
    hits: float | None = Field(default=None, ge=0)
    """Calls of a region's kernel per step of the program with it; null for an operator."""
    places: int | None = Field(default=None, ge=0)
    """Number of places in the compiled graphs where the kernel replaces the region; null for an operator."""
    measured: Comparison | None = None
    """The whole step with the kernel compared with the step without it; null if it was not measured."""

    @model_validator(mode="after")
    def _check_unique_workloads(self) -> Self:
        names = [workload.workload for workload in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError("a workload is listed twice")
        return self

    @property
    def real(self) -> Gain:
        """Return the real gain of a step."""
        return self._step([workload.real for workload in self.workloads])

    @property
    def weight_cache(self) -> Gain:
        """Return the additional gain of a step where weights stay the same between calls."""
        return self._step([workload.weight_cache for workload in self.workloads])

    @property
    def residual(self) -> Gain:
        """Return the additional gain that a benchmark would show and a step never has."""
        return self._step([workload.residual for workload in self.workloads])

    @property
    def inflated(self) -> tuple[WorkloadTransfer, ...]:
        """Return the workloads with a gain that does not transfer."""
        return tuple(workload for workload in self.workloads if workload.inflated)

    @property
    def undetectable(self) -> tuple[WorkloadTransfer, ...]:
        """Return the workloads where noise could hide a reused result that matters to the step."""
        least = _LEAST_SHARE * self.step_seconds
        return tuple(
            workload
            for workload in self.workloads
            if not workload.detectable and workload.calls * workload.seconds > least
        )

    @property
    def judged_seconds(self) -> float | None:
        """Return the gain of a step if its calls ran as in the version's record; None if that lacks a workload."""
        gains = [workload.judged for workload in self.workloads if workload.judged is not None]
        if len(gains) < len(self.workloads):
            return None
        return sum(workload.calls * gain for workload, gain in zip(self.workloads, gains, strict=True))

    @property
    def predicted(self) -> float | None:
        """Return the speedup of the step that follows from the real gain; None if the gain exceeds the step."""
        return speedup_from_gain(self.step_seconds, self.real.seconds)

    @property
    def measured_seconds(self) -> float | None:
        """Return the measured gain of a step in seconds; None if it was not measured."""
        if self.measured is None:
            return None
        return self.measured.other_seconds * (1 - 1 / self.measured.speedup)

    @property
    def seam_seconds(self) -> float | None:
        """Return the seconds of a step that a region's kernel loses again, because Inductor fuses less around it.

        That is the gain of its calls alone less the gain of the step; None for an operator or without both.
        """
        measured = self.measured_seconds
        return None if not self.region or measured is None else self.real.seconds - measured

    def _step(self, gains: list[Gain]) -> Gain:
        calls = [item.calls for item in self.workloads]
        return Gain(
            seconds=sum(count * item.seconds for count, item in zip(calls, gains, strict=True)),
            error=hypot(*(count * item.error for count, item in zip(calls, gains, strict=True))),
        )


def is_inflated(residual: Gain, reference_seconds: float) -> bool:
    """Return whether a gain that only repeated inputs give is more than noise; `reference_seconds` is per call."""
    return residual.seconds > max(LEAST_RESIDUAL * reference_seconds, STANDARD_ERRORS * residual.error)


def detects_kept_result(error: float, seconds: float) -> bool:
    """Return whether a residual with this error would reveal that a kernel of these seconds reuses its result."""
    return STANDARD_ERRORS * error <= _HIDDEN * seconds


def speedup_from_gain(step_seconds: float, gain_seconds: float) -> float | None:
    """Return the speedup of a step that the gain shortens; None if nothing of the step would be left."""
    return None if gain_seconds >= step_seconds else step_seconds / (step_seconds - gain_seconds)
