"""Paired timing: all sides of a judgement, timed on every workload and repeated until the decision is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log

from warpsmith.core import gate_rules
from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Workload, calls_by_workload
from warpsmith.core.evaluation import BEST, TWIN, Aggregate, Comparison, Energy, Timing
from warpsmith.core.hardware import Measurement
from warpsmith.core.text import Tell
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import ProvisionalDecision
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import energy, statistics, timing
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.project import Project

SessionOpener = Callable[[Workload], Session]
"""Opens a session for a workload."""


def noise_floor(measurement: Measurement) -> float:
    """Return this machine's A/A floor, or the assumed one if none was measured."""
    return measurement.noise.floor if measurement.noise else gate_rules.FALLBACK_FLOOR


class PairedTiming:
    """Times of all workloads so far, and what follows from them."""

    def __init__(self, workloads: Sequence[Workload], budget: TimingBudget, gauge: Gauge | None) -> None:
        self.workloads, self._budget, self._gauge = workloads, budget, gauge
        self._calls = calls_by_workload(workloads)
        self.samples: dict[str, Samples] = {}
        """Workload name to samples."""

    def time_workload(self, workload: Workload, open_session: SessionOpener) -> None:
        """Add a batch of rounds at one workload.

        Raises:
            SideFailed: a side fails, or a timed output is wrong.
        """
        samples = self.samples.setdefault(workload.name, Samples())
        timing.time_rounds(open_session(workload), samples, self._budget, self._gauge)

    def read_energy(self, workload: Workload, open_session: SessionOpener) -> None:
        """Add a batch of energy readings of the version and the best one, at a workload that was timed.

        Raises:
            SideFailed: a side fails, or is no CUDA graph; a result is wrong, or replayed in no plausible time.
            MachineFailed: the GPU's counter stands still.
        """
        if self._gauge is None:
            raise AssertionError("a processor has no energy counter")
        energy.read_energy(open_session(workload), self.samples[workload.name], self._gauge)

    def settle(
        self,
        time: Callable[[Workload], None],
        measurement: Measurement,
        thresholds: Thresholds,
        repeats: int = 0,
        tell: Tell = lambda _: None,
        judgement: int = 1,
    ) -> ProvisionalDecision:
        """Time all workloads, and repeat that until the decision is settled.

        Args:
            time: times one workload with `self.time_workload`, and reads its energy where energy decides.
            measurement: measurement of this machine, with its A/A floor.
            thresholds: thresholds of the campaign.
            repeats: repetitions that count as made before this.
            tell: takes lines of progress.
            judgement: number of this judgement in its campaign.
        """
        while True:
            for workload in self.workloads:
                time(workload)
            provisional = self.provisional_decision(measurement, thresholds, repeats, judgement)
            if provisional.settled:
                return provisional
            repeats += 1
            tell(f"timing: repeat {repeats} of {thresholds.max_repeats}")

    def timings(
        self, project: Project, page: HardwarePage, measurement: Measurement, file: DefinitionFile, device: str
    ) -> dict[str, Timing]:
        """Return workload name to the record of its times, with the roofline."""
        timings = {}
        for workload in self.workloads:
            samples = self.samples[workload.name]
            clock = timing.timing_clock(samples, device)
            roofline = hardware.workload_roofline(project, page, measurement, file.definition, workload, clock)
            timings[workload.name] = timing.summarize_samples(samples, roofline, device)
        return timings

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return the geometric mean over the workloads against each other side."""
        sides = [name for name in next(iter(self.samples.values())).seconds if name != SOLUTION]
        return tuple(
            statistics.geometric_mean(
                {name: (s.seconds[SOLUTION], s.seconds[side]) for name, s in self.samples.items()},
                side,
                self._calls,
            )
            for side in sides
        )

    def twin_difference(self) -> float:
        """Return how far the best version and its twin are apart, as a share of the mean over the workloads."""
        pairs = {name: (s.seconds[TWIN], s.seconds[BEST]) for name, s in self.samples.items()}
        return abs(statistics.geometric_mean(pairs, BEST, self._calls).speedup - 1)

    def energy(self) -> Energy | None:
        """Return the record of the joules per call; None if none were read."""
        readings = {name: samples.joules for name, samples in self.samples.items() if samples.joules}
        return energy.summarize_energy(readings, self._calls) if readings else None

    def provisional_decision(
        self,
        measurement: Measurement,
        thresholds: Thresholds,
        repeats: int,
        judgement: int = 1,
    ) -> ProvisionalDecision:
        """Decide by the times so far; without a best version to beat it is settled."""
        means = self.aggregates()
        against = next((mean for mean in means if mean.against == BEST), None)
        if against is None:
            return ProvisionalDecision(True, decision.accept_without_rival([mean.against for mean in means]))
        provisional = decision.decide_verdict(
            against,
            {name: _comparison_with_best(samples) for name, samples in self.samples.items()},
            noise_floor(measurement),
            thresholds,
            repeats,
            self.energy(),
            judgement=judgement,
        )
        shares = against.shares or dict.fromkeys(self.samples, 1 / len(self.samples))
        mean = sum(
            shares[name]
            * log(statistics.trimmed_mean(s.seconds[BEST]) / statistics.trimmed_mean(s.seconds[SOLUTION]))
            for name, s in self.samples.items()
        )
        exhausted = repeats >= thresholds.max_repeats
        return decision.hold_against_mean(
            provisional, against.speedup, exp(mean), noise_floor(measurement), exhausted
        )

    def notes(self, measurement: Measurement) -> list[str]:
        """List what a reader of the times must know."""
        notes = []
        if measurement.noise is None:
            notes.append(f"no A/A floor was measured on this machine; {gate_rules.FALLBACK_FLOOR:.0%} assumed")
        for name, samples in self.samples.items():
            notes += [f"{name}: {side} is no CUDA graph ({reason}): all sides were launched call by call"
                      for side, reason in samples.eager.items()]  # fmt: skip
            limited = sorted({limit for reading in samples.readings for limit in reading.limited})
            if limited:
                notes.append(f"{name}: the GPU held its clocks down: {', '.join(limited)}")
            late = {side: r for side, r in samples.clock_ratios().items() if r > gate_rules.CLOCKS_DISAGREE}
            notes += [f"{name}: {side} takes {ratio:.1f} times as long by wall clock"
                      for side, ratio in late.items()]  # fmt: skip
            if not samples.cold:
                notes.append(f"{name}: its tensors fit the L2 cache: timed warm")
        return notes


def _comparison_with_best(samples: Samples) -> Comparison:
    return timing.compare_times(BEST, samples.seconds[SOLUTION], samples.seconds[BEST])
