"""False wins: how often the gate accepts a version that has the same code as the best one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST, GATE_VERSION
from warpsmith.core.hardware import Measurement, Target
from warpsmith.core.text import ProgressLine, Tell
from warpsmith.lab.calibration.noise import IdenticalSides
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.paired_timing import PairedTiming, noise_floor
from warpsmith.lab.gate_tests import unfinished
from warpsmith.lab.gate_tests.false_win_models import RATE, FalseWins
from warpsmith.lab.machine import identity, provenance
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import TimingBudget

_SIDES = (SOLUTION, BEST)
_OUTCOMES = ("accepted", "regressions", "ambiguous", "none")
"""Outcomes of an A/A judgement, named as the record's fields that count them."""


def count_false_wins(
    target: Target,
    measurement: Measurement,
    runs: int,
    tell: Tell = lambda _: None,
    earlier: FalseWins | None = None,
) -> Iterator[FalseWins]:
    """Judge an operator against itself `runs` times, by the rules and repeats of a judgement.

    Args:
        target: the device kind.
        measurement: the machine's ceilings and A/A floor.
        runs: number of judgements, including those of `earlier`.
        tell: takes lines of progress.
        earlier: unfinished record to continue.

    Yields:
        The record after each judgement; the last one is finished. If `earlier` has all of them, only that one.

    Raises:
        MachineFailed: a worker fails.
    """
    if earlier and earlier.runs == runs:
        yield earlier.model_copy(update={"finished": True})
        return
    machine = identity.identify_machine(target)
    earlier_runs = earlier.runs if earlier else 0
    outcomes = Counter({name: getattr(earlier, name) for name in _OUTCOMES} if earlier else {})
    largest = earlier.largest_gain if earlier else -math.inf
    with IdenticalSides(target, _SIDES) as identical:
        gauge = Gauge(measurement.machine.uuid) if identical.device != "cpu" else None
        sizes = ", ".join(workload.name for workload in identical.workloads)
        description = f"`{identical.file.definition.description}` at {sizes} float32, fresh processes each time"
        for run in range(earlier_runs + 1, runs + 1):
            line = f"A/A judgement {run} of {runs}: {outcomes['accepted']} accepted so far"
            tell(ProgressLine(line, (run - 1) / runs))
            outcome, gain = _judge(identical, measurement, gauge)
            outcomes[outcome] += 1
            largest = max(largest, gain)
            yield FalseWins(
                machine=machine,
                gate_version=GATE_VERSION,
                lab_sha256=provenance.lab_sha256(),
                measured=this_minute(),
                runs=run,
                **{name: outcomes[name] for name in _OUTCOMES},
                upper=_upper_limit(outcomes["accepted"], run),
                stated=RATE,
                floor=_measured_floor(measurement),
                largest_gain=largest,
                how=description,
                finished=run == runs,
            )


def read_earlier_false_wins(
    path: Path, target: Target, measurement: Measurement, runs: int
) -> tuple[FalseWins | None, str]:
    """Read the unfinished record at `path` that `count_false_wins` can continue.

    Returns:
        The record, or None with the reason in a few words.
    """

    def find_difference(record: FalseWins) -> str:
        if record.runs > runs:
            return f"it holds {record.runs} judgements, more than the {runs} that are asked for"
        same_floor = record.floor == _measured_floor(measurement)
        return "" if same_floor else "the A/A floor was measured again since"

    return unfinished.read_unfinished(path, FalseWins, identity.identify_machine(target), find_difference)


def _measured_floor(measurement: Measurement) -> float | None:
    return measurement.noise.floor if measurement.noise else None


def _upper_limit(accepted: int, runs: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(accepted, runs).proportion_ci(method="exact").high)


def _judge(identical: IdenticalSides, measurement: Measurement, gauge: Gauge | None) -> tuple[str, float]:
    """Run one A/A judgement; return its outcome and the gain that it saw."""
    thresholds = Thresholds()

    def settle(repeats: int) -> ProvisionalDecision:
        identical.restart()
        timing = PairedTiming(identical.workloads, TimingBudget.for_device(identical.device), gauge)
        return timing.settle(
            lambda workload: timing.time_workload(workload, identical.open_session),
            measurement,
            thresholds,
            repeats,
        )

    first = settle(0)
    verdict = first.decision
    if first.needs_confirmation:
        verdict = decision.confirm_in_fresh_processes(first, lambda: settle(1), noise_floor(measurement))
    gain = first.aggregate.speedup - 1 if first.aggregate else 0.0
    if verdict.verdict.accepted:
        return "accepted", gain
    if verdict.ambiguous:
        return "ambiguous", gain
    return ("regressions" if first.regressions else "none"), gain
