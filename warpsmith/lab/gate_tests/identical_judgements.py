"""A/A judgements on one device: an operator judged against itself by the rules and repeats of a judgement."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.core.base import Model
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST
from warpsmith.core.hardware import Machine, Measurement, Target
from warpsmith.core.text import NoticeLine, Tell
from warpsmith.errors import MachineFailed
from warpsmith.lab.calibration import measurement
from warpsmith.lab.calibration.noise import IdenticalSides
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.paired_timing import PairedTiming, noise_floor
from warpsmith.lab.gate_tests.false_win_models import Outcome
from warpsmith.lab.machine import device_lease, identity
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.project import Project

TRIES = 2
"""Failures of the machine in a row that end the judgements of a device."""

_SIDES = (SOLUTION, BEST)


class DeviceJudgement(Model):
    """One A/A judgement, with what it was made on."""

    machine: Machine
    """The machine, with the device."""
    floor: float | None
    """A/A floor of the device; null if none was measured."""
    how: str
    """Description of the operator and its sizes."""
    outcome: Outcome
    """Outcome of the judgement."""
    gain: float
    """Geometric-mean gain that it measured."""


def judge_on_device(
    project: Project, target: Target, device: str, runs: int, tell: Tell = lambda _: None
) -> Iterator[DeviceJudgement]:
    """Hold a device and judge an operator against itself on it; a judgement is made again if the machine fails.

    Args:
        project: the project, whose measurement of the device is used, or measured now.
        target: the device kind.
        device: UUID of the GPU, or `cpu`; it is waited for.
        runs: number of judgements.
        tell: takes lines of progress.

    Yields:
        Each judgement.

    Raises:
        MachineFailed: the machine fails `TRIES` times in a row.
    """
    failures, left = 0, runs
    with device_lease.show_device(device), device_lease.lease_device(target, tell):
        measured = measurement.ensure_measurement(project, target, tell)
        while left:
            try:
                for judgement in _judge_identical(target, measured, left):
                    failures, left = 0, left - 1
                    yield judgement
            except MachineFailed as error:
                failures += 1
                if failures == TRIES:
                    raise
                tell(NoticeLine(f"the machine failed at an A/A judgement, which is made again: {error}"))


def _judge_identical(target: Target, measured: Measurement, runs: int) -> Iterator[DeviceJudgement]:
    machine = identity.identify_machine(target)
    with IdenticalSides(target, _SIDES) as identical:
        gauge = Gauge(measured.machine.uuid) if identical.device != "cpu" else None
        sizes = ", ".join(workload.name for workload in identical.workloads)
        description = f"`{identical.file.definition.description}` at {sizes} float32, fresh processes each time"
        for _ in range(runs):
            outcome, gain = _judge(identical, measured, gauge)
            yield DeviceJudgement(
                machine=machine,
                floor=measured.noise.floor if measured.noise else None,
                how=description,
                outcome=outcome,
                gain=gain,
            )


def _judge(identical: IdenticalSides, measured: Measurement, gauge: Gauge | None) -> tuple[Outcome, float]:
    """Run one A/A judgement; return its outcome and the gain that it saw."""
    thresholds = Thresholds()

    def settle(repeats: int) -> ProvisionalDecision:
        identical.restart()
        timing = PairedTiming(identical.workloads, TimingBudget.for_device(identical.device), gauge)
        return timing.settle(
            lambda workload: timing.time_workload(workload, identical.open_session),
            measured,
            thresholds,
            repeats,
        )

    first = settle(0)
    verdict = first.decision
    if first.needs_confirmation:
        verdict = decision.confirm_in_fresh_processes(first, lambda: settle(1), noise_floor(measured))
    gain = first.aggregate.speedup - 1 if first.aggregate else 0.0
    if verdict.verdict.accepted:
        return "accepted", gain
    if verdict.ambiguous:
        return "ambiguous", gain
    return ("regressions" if first.regressions else "none"), gain
