"""Timing over ranks: paired blocks of calls of all sides, from a common start to the slowest rank's end."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Mapping
from math import exp, log
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Workload, calls_by_workload
from warpsmith.core.evaluation import BEST, TWIN, Aggregate
from warpsmith.core.text import Tell
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.ranks.correctness_check import grade_slot
from warpsmith.lab.ranks.group import SLOTS, RankGroup
from warpsmith.lab.ranks.models import RankTiming
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    import torch

LARGE_ELEMENTS = 1 << 22
"""Elements of a workload beyond which a round draws one set of inputs anew and deals the others out differently.
Chosen: a draw of all takes seconds there."""

TIMING_SECONDS = 2.0
"""Seconds per workload after which no round beyond the least is started. Chosen: an exchange scatters more than a
kernel."""


class RankTimes:
    """Paired times of all workloads so far, and what follows from them."""

    def __init__(self, file: DefinitionFile, seed: int, tell: Tell) -> None:
        self._file, self._seed, self._tell = file, seed, tell
        self._workloads = file.definition.select("representative")
        self._calls = calls_by_workload(self._workloads)
        self.seconds: dict[str, dict[str, list[float]]] = {}
        """Workload to side to seconds per call."""
        self.ahead: dict[str, dict[str, bool]] = {}
        """Workload to side to whether every block began when all its calls were issued; on GPUs alone."""

    def time_workload(self, workload: Workload, groups: Mapping[str, RankGroup]) -> None:
        """Add rounds of a workload: each side once a round, in an order by chance, on inputs that are new.

        Raises:
            SideFailed: a rank fails, or a timed result is wrong.
        """
        self._seed += 1
        chance = random.SystemRandom()
        group = next(iter(groups.values()))
        device, deal = group.device, _Deal(self._file, workload, self._seed, group.grading_device)
        times = self.seconds.setdefault(workload.name, {name: [] for name in groups})
        for group in groups.values():
            group.open_workload(workload)
        started = time.monotonic()
        for number in range(gate_rules.WARM_UP_ROUNDS + gate_rules.MAX_ROUNDS[device]):
            rounds = number - gate_rules.WARM_UP_ROUNDS
            if rounds >= gate_rules.MIN_ROUNDS[device] and time.monotonic() - started > TIMING_SECONDS:
                break
            slots = deal.deal_inputs()
            slot = chance.randrange(SLOTS)
            truth = deal.truth(slot)
            for group in groups.values():
                group.fill(slots)
            for name, group in chance.sample(list(groups.items()), len(groups)):
                seconds = group.call_slots(
                    [[0.0] * SLOTS] * self._file.definition.ranks, checked=False, graded=slot
                )
                grade_slot(self._file, group, slot, slots[slot], truth, "a timed call")
                if rounds < 0:
                    continue
                times[name].append(seconds / SLOTS)
                if group.ahead is not None:
                    ahead = self.ahead.setdefault(workload.name, {})
                    ahead[name] = ahead.get(name, True) and group.ahead

    def settle(
        self, groups: Mapping[str, RankGroup], thresholds: Thresholds, judgement: int = 1
    ) -> ProvisionalDecision:
        """Time all workloads, and repeat that until the decision is settled.

        `judgement` is the number of this judgement among its campaign's comparisons.
        """
        repeats = 0
        while True:
            for workload in self._workloads:
                self._tell(f"timing {workload.name}")
                self.time_workload(workload, groups)
            provisional = self._decide(thresholds, repeats, judgement)
            if provisional.settled:
                return provisional
            repeats += 1

    def mean(self, own: str, other: str) -> Aggregate:
        """Return the geometric mean over the workloads of one side against another."""
        pairs = {name: (sides[own], sides[other]) for name, sides in self.seconds.items()}
        return statistics.geometric_mean(pairs, other, self._calls)

    @property
    def floor(self) -> float:
        """Noise floor: what two groups of the same version differ by in the same rounds, and at least the floor of
        a machine that was not measured."""
        if BEST not in next(iter(self.seconds.values())):
            return gate_rules.FALLBACK_FLOOR
        return max(gate_rules.FALLBACK_FLOOR, statistics.self_comparison_floor(self.mean(TWIN, BEST)))

    def summarize(self) -> dict[str, RankTiming]:
        """Return workload to the record of its times."""
        return {
            name: RankTiming(
                seconds=statistics.median(sides[SOLUTION]),
                samples=len(sides[SOLUTION]),
                spread=statistics.spread(sides[SOLUTION]),
                issued_ahead=self.ahead.get(name, {}).get(SOLUTION),
                comparison=timing.compare_times(BEST, sides[SOLUTION], sides[BEST]) if BEST in sides else None,
            )
            for name, sides in self.seconds.items()
        }

    def _decide(self, thresholds: Thresholds, repeats: int, judgement: int) -> ProvisionalDecision:
        comparisons = {name: each.comparison for name, each in self.summarize().items() if each.comparison}
        if not comparisons:
            return ProvisionalDecision(True, decision.accept_without_rival())
        aggregate = self.mean(SOLUTION, BEST)
        provisional = decision.decide_verdict(
            aggregate, comparisons, self.floor, thresholds, repeats, judgement=judgement
        )
        shares = aggregate.shares or dict.fromkeys(self.seconds, 1 / len(self.seconds))
        mean = sum(
            shares[name] * log(statistics.trimmed_mean(sides[BEST]) / statistics.trimmed_mean(sides[SOLUTION]))
            for name, sides in self.seconds.items()
        )
        exhausted = repeats >= thresholds.max_repeats
        return decision.hold_against_mean(provisional, aggregate.speedup, exp(mean), self.floor, exhausted)


class _Deal:
    """Inputs of a workload for one round after the other, and the truths of those that are graded."""

    def __init__(self, file: DefinitionFile, workload: Workload, seed: int, device: str) -> None:
        self._file, self._workload = file, workload
        self._inputs = Inputs(file, workload, seed, device)
        self._large = file.definition.elements(workload) > LARGE_ELEMENTS
        self._sets: list[dict[str, torch.Tensor]] = []
        self._truths: list[Truth | None] = []

    def deal_inputs(self) -> list[dict[str, torch.Tensor]]:
        """Return a set of inputs for each slot: new ones; of large ones, one new and the others dealt out anew."""
        if self._large and self._sets:
            pairs = list(zip(self._sets, self._truths, strict=True))
            pairs[random.randrange(SLOTS)] = (self._inputs.draw(quick=True), None)
            random.shuffle(pairs)
            self._sets, self._truths = [each[0] for each in pairs], [each[1] for each in pairs]
        else:
            self._sets = list(self._inputs.draw_several(SLOTS, quick=True))
            self._truths = [None] * SLOTS
        return self._sets

    def truth(self, slot: int) -> Truth:
        """Return the truth of a slot's inputs."""
        truth = self._truths[slot] or correctness.compute_truth(self._file, self._workload, self._sets[slot])
        self._truths[slot] = truth
        return truth


def time_groups(
    file: DefinitionFile, workload: Workload, groups: Mapping[str, RankGroup], tell: Tell = lambda _: None
) -> tuple[RankTimes, dict[str, SideFailed]]:
    """Time groups at a workload in the same rounds, all anew without each one that fails, which is closed.

    Returns:
        Times of the groups that did not fail, and the failures by name.
    """
    left, failures = dict(groups), dict[str, SideFailed]()
    while True:
        times = RankTimes(file, secrets.randbits(62), tell)
        if not left:
            return times, failures
        try:
            times.time_workload(workload, left)
            return times, failures
        except SideFailed as failure:
            name = failure.side if failure.side in left else next(iter(left))
            left.pop(name).close()
            failures[name] = failure
