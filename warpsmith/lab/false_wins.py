"""How often the gate calls a difference where there is none: the same code judged against itself, many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST, GATE_VERSION
from warpsmith.core.false_wins import RATE, FalseWins
from warpsmith.core.hardware import Measurement, Target
from warpsmith.lab import decision, machine, provenance
from warpsmith.lab.decision import Standing
from warpsmith.lab.noise import TwoAlike
from warpsmith.lab.race import Race
from warpsmith.lab.session import SOLUTION
from warpsmith.lab.telemetry import Gauge
from warpsmith.lab.timing import Budget

_SIDES = (SOLUTION, BEST)


def count(
    target: Target, measurement: Measurement, runs: int, tell: Callable[[str], None] = lambda _: None
) -> FalseWins:
    """Race an operator against itself and decide, `runs` times, by the rules and repeats of a judgement.

    Raises:
        MachineFailed: a worker fails.
    """
    from scipy.stats import binomtest

    outcomes: Counter[str] = Counter()
    gains = []
    with TwoAlike(target, _SIDES) as alike:
        gauge = Gauge(measurement.machine.uuid) if alike.device != "cpu" else None
        for run in range(runs):
            tell(f"A/A judgement {run + 1} of {runs}: {outcomes['accepted']} accepted so far")
            outcome, gain = _judge(alike, measurement, gauge)
            outcomes[outcome] += 1
            gains.append(gain)
    accepted = outcomes["accepted"]
    return FalseWins(
        machine=machine.machine(target),
        gate_version=GATE_VERSION,
        lab_sha256=provenance.lab_sha256(),
        measured=this_minute(),
        runs=runs,
        accepted=accepted,
        regressions=outcomes["regression"],
        ambiguous=outcomes["ambiguous"],
        none=outcomes["none"],
        upper=float(binomtest(accepted, runs).proportion_ci(method="exact").high),
        stated=RATE,
        floor=measurement.noise.floor if measurement.noise else None,
        largest_gain=max(gains),
        how=f"`{alike.file.definition.description}` at {', '.join(w.name for w in alike.workloads)} float32, "
        "fresh processes each time",
    )


def _judge(alike: TwoAlike, measurement: Measurement, gauge: Gauge | None) -> tuple[str, float]:
    """One A/A judgement: what came out, and the gain it saw."""
    thresholds = Thresholds()

    def raced(repeats: int) -> Standing:
        alike.restart()
        race = Race(alike.workloads, Budget.of(alike.device), gauge)
        return race.settle(lambda one: race.time(one, alike.session), measurement, thresholds, repeats)

    first = raced(0)
    decided = decision.confirmed(first, raced(1)) if first.twice else first.decision
    gain = first.aggregate.speedup - 1 if first.aggregate else 0.0
    if decided.verdict.accepted:
        return "accepted", gain
    if decided.ambiguous:
        return "ambiguous", gain
    return ("regression" if first.lost else "none"), gain
