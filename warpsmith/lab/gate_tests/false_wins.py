"""How often the gate calls a difference where there is none: the same code judged against itself, many times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST, GATE_VERSION
from warpsmith.core.hardware import Measurement, Target
from warpsmith.lab.calibration.noise import TwoAlike
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import Standing
from warpsmith.lab.gate.race import Race, floor
from warpsmith.lab.gate_tests import unfinished
from warpsmith.lab.gate_tests.false_win_models import RATE, FalseWins
from warpsmith.lab.machine import machine, provenance
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import Budget

_SIDES = (SOLUTION, BEST)
_OUTCOMES = ("accepted", "regressions", "ambiguous", "none")
"""What an A/A judgement comes to, as the record's fields count it."""


def count(
    target: Target,
    measurement: Measurement,
    runs: int,
    tell: Callable[[str], None] = lambda _: None,
    earlier: FalseWins | None = None,
) -> Iterator[FalseWins]:
    """Race an operator against itself and decide, `runs` times, by the rules and repeats of a judgement.

    Args:
        target: the device kind.
        measurement: the machine's ceilings and A/A floor.
        runs: judgements, with those of `earlier`.
        tell: is told what is going on.
        earlier: an unfinished record to go on with.

    Yields:
        The record after each judgement; the last one is finished. Of `earlier` with all of them only that.

    Raises:
        MachineFailed: a worker fails.
    """
    if earlier and earlier.runs == runs:
        yield earlier.model_copy(update={"finished": True})
        return
    here = machine.machine(target)
    done = earlier.runs if earlier else 0
    outcomes = Counter({name: getattr(earlier, name) for name in _OUTCOMES} if earlier else {})
    largest = earlier.largest_gain if earlier else -math.inf
    with TwoAlike(target, _SIDES) as alike:
        gauge = Gauge(measurement.machine.uuid) if alike.device != "cpu" else None
        sizes = ", ".join(workload.name for workload in alike.workloads)
        how = f"`{alike.file.definition.description}` at {sizes} float32, fresh processes each time"
        for run in range(done + 1, runs + 1):
            tell(f"A/A judgement {run} of {runs}: {outcomes['accepted']} accepted so far")
            outcome, gain = _judge(alike, measurement, gauge)
            outcomes[outcome] += 1
            largest = max(largest, gain)
            yield FalseWins(
                machine=here,
                gate_version=GATE_VERSION,
                lab_sha256=provenance.lab_sha256(),
                measured=this_minute(),
                runs=run,
                **{name: outcomes[name] for name in _OUTCOMES},
                upper=_upper(outcomes["accepted"], run),
                stated=RATE,
                floor=_floor(measurement),
                largest_gain=largest,
                how=how,
                finished=run == runs,
            )


def earlier(path: Path, target: Target, measurement: Measurement, runs: int) -> tuple[FalseWins | None, str]:
    """The unfinished record at `path` that `count` can go on with; or None, and why in a few words."""

    def unlike(found: FalseWins) -> str:
        if found.runs > runs:
            return f"it holds {found.runs} judgements, more than the {runs} that are asked for"
        return "" if found.floor == _floor(measurement) else "the A/A floor was measured anew since"

    return unfinished.read(path, FalseWins, machine.machine(target), unlike)


def _floor(measurement: Measurement) -> float | None:
    return measurement.noise.floor if measurement.noise else None


def _upper(accepted: int, runs: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(accepted, runs).proportion_ci(method="exact").high)


def _judge(alike: TwoAlike, measurement: Measurement, gauge: Gauge | None) -> tuple[str, float]:
    """One A/A judgement: what came out, and the gain it saw."""
    thresholds = Thresholds()

    def raced(repeats: int) -> Standing:
        alike.restart()
        race = Race(alike.workloads, Budget.of(alike.device), gauge)
        return race.settle(lambda one: race.time(one, alike.session), measurement, thresholds, repeats)

    first = raced(0)
    decided = first.decision
    if first.twice:
        decided = decision.seen_again(first, lambda: raced(1), floor(measurement))
    gain = first.aggregate.speedup - 1 if first.aggregate else 0.0
    if decided.verdict.accepted:
        return "accepted", gain
    if decided.ambiguous:
        return "ambiguous", gain
    return ("regressions" if first.lost else "none"), gain
