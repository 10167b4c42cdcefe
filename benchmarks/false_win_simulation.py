"""False wins and power of the gate's decision in simulated campaigns, under five kinds of noise.

The decisions are the gate's own, on paired times that are drawn in place of measured ones. A campaign of null
versions is judged round after round; it is lost if any of them is accepted. Power is the share of versions with a
given gain that a campaign's first and 25th judgement accept.

    python benchmarks/false_win_simulation.py --out benchmarks/records/false_win_simulation.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from warpsmith.core import gate_rules
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Thresholds
from warpsmith.core.evaluation import BEST, GATE_VERSION, TWIN
from warpsmith.core.hardware import Noise
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.gate.paired_timing import PairedTiming
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import TimingBudget

WORKLOADS, PAIRS, CALL = 3, 12, 0.01
"""Workloads, pairs of one batch, and the deviation of the log of a call's time."""
GAINS = (0.01, 0.02, 0.03, 0.05, 0.1)
"""Gains at which power is counted."""

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
NOISES: dict[str, tuple[Draw, float]] = {
    "independent": (lambda rng, shape: rng.normal(0, CALL, shape), 0.0),
    "heavy tails": (lambda rng, shape: CALL * rng.standard_t(1.5, shape), 0.0),
    "drift": (lambda rng, shape: rng.normal(0, CALL, shape) + np.linspace(0, 0.1, shape[-1]), 0.0),
    "periodic": (lambda rng, shape: rng.normal(0, CALL, shape) + 0.05 * (np.arange(shape[-1]) % 4 == 0), 0.0),
    "process": (lambda rng, shape: rng.normal(0, CALL, shape), 0.02),
}
"""Kind of noise to its draw for the calls of one side, and the deviation of a process's own speed."""


class Machine:
    """A machine with one kind of noise, and the floor that was measured on it."""

    def __init__(self, kind: str, rng: np.random.Generator, floor: float | None = None) -> None:
        self.draw, self.process = NOISES[kind]
        self.rng = rng
        gains = [self._comparison().speedup - 1 for _ in range(gate_rules.NOISE_COMPARISONS)]
        noise = Noise(floor=floor or statistics.student_floor(gains), trials=len(gains), how="simulated")
        self.measurement: Any = SimpleNamespace(noise=noise)

    def judge(self, gain: float, judgement: int) -> bool:
        """Judge one version; return True if it is accepted."""
        first = self._look(gain, judgement, 0)
        if not first.needs_confirmation:
            return first.decision.verdict.accepted
        self.twin = 0.0
        again = decision.confirm_in_fresh_processes(first, lambda: self._look(gain, judgement, 1), first.floor)
        restless = self.twin > gate_rules.TWIN_FLOORS * self.measurement.noise.floor
        return decision.hold_against_twin(again, first, self.twin).verdict.accepted and not restless

    def _look(self, gain: float, judgement: int, repeats: int) -> ProvisionalDecision:
        names = [SimpleNamespace(name=str(number)) for number in range(WORKLOADS)]
        timing: Any = PairedTiming(names, TimingBudget(), None)
        timing.samples = {workload.name: Samples() for workload in names}
        speeds = self._speeds()

        def time(workload: Any) -> None:  # noqa: ANN401
            own, other, twin = self._times(speeds)
            timing.samples[workload.name].seconds[SOLUTION] += list(own / (1 + gain))
            timing.samples[workload.name].seconds[BEST] += list(other)
            if repeats:
                timing.samples[workload.name].seconds[TWIN] += list(twin)

        settled: ProvisionalDecision = timing.settle(
            time, self.measurement, Thresholds(), repeats, judgement=judgement
        )
        if repeats:
            self.twin = max(self.twin, timing.twin_difference())
        return settled

    def _comparison(self) -> Any:  # noqa: ANN401
        speeds = self._speeds()
        pairs = {str(number): self._times(speeds) for number in range(WORKLOADS)}
        return statistics.geometric_mean({name: (list(a), list(b)) for name, (a, b, _) in pairs.items()}, BEST)

    def _speeds(self) -> np.ndarray:
        return self.rng.normal(0, self.process, 3) if self.process else np.zeros(3)

    def _times(self, speeds: np.ndarray) -> np.ndarray:
        """Draw seconds of three sides, whose calls alternate, so that a drift is nearly the same for all."""
        logs = self.draw(self.rng, (3 * PAIRS,)).reshape(PAIRS, 3).T + speeds[:, None]
        return np.exp(logs) * 1e-3


def main() -> None:
    """Run the simulation and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("false_win_simulation.json"))
    options = parser.parse_args()
    record: dict[str, Any] = {
        "measured": this_minute(),
        "gate_version": GATE_VERSION,
        "campaigns": options.campaigns,
        "rounds": options.rounds,
        "stated": gate_rules.CAMPAIGN_FALSE_WINS,
        "noise": {},
    }
    for kind in (*NOISES, "process, floor edited to 0.2 %"):
        record["noise"][kind] = row = _simulate(kind, options.campaigns, options.rounds)
        power = ", ".join(f"{gain} {first:.0%}/{late:.0%}" for gain, (first, late) in row["power"].items())
        print(f"{kind}: {row['false_wins']} false wins in {row['judgements']}; {power}", flush=True)
        options.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _simulate(kind: str, campaigns: int, rounds: int) -> dict[str, Any]:
    base, edited = kind.partition(",")[0], "edited" in kind
    rng = np.random.default_rng(20261124)
    lost = wins = 0
    for _ in range(campaigns):
        machine = Machine(base, rng, gate_rules.MIN_FLOOR if edited else None)
        accepted = sum(machine.judge(0.0, judgement) for judgement in range(1, rounds + 1))
        wins, lost = wins + accepted, lost + (accepted > 0)
    power = {}
    for gain in GAINS:
        counts = np.zeros(2)
        for _ in range(campaigns):
            machine = Machine(base, rng)
            counts += [machine.judge(gain, judgement) for judgement in (1, 25)]
        power[f"{gain:.0%}"] = list(counts / campaigns)
    return {
        "false_wins": wins,
        "judgements": campaigns * rounds,
        "campaigns_with_one": lost,
        "power": power,
    }


if __name__ == "__main__":
    main()
