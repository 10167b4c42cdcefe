"""The race: all sides of a judgement timed on every workload, repeated until the decision is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.core.campaign import Thresholds
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BEST, Aggregate, Comparison, Energy, Timing
from warpsmith.core.hardware import Measurement
from warpsmith.lab.gate import decision
from warpsmith.lab.gate.decision import Standing
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import energy, statistics, timing
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.timing import Budget
from warpsmith.project import Project

FALLBACK_FLOOR = 0.02
"""The noise floor where none was measured on this machine."""

Opener = Callable[[Workload], Session]
"""Makes a session of all sides for a workload."""


def floor(measurement: Measurement) -> float:
    """This machine's A/A floor, or what is assumed where none was measured."""
    return measurement.noise.floor if measurement.noise else FALLBACK_FLOOR


class Race:
    """Times of all workloads so far, and what they say."""

    def __init__(self, workloads: Sequence[Workload], budget: Budget, gauge: Gauge | None) -> None:
        self.workloads, self._budget, self._gauge = workloads, budget, gauge
        self.samples: dict[str, Samples] = {}
        """Workload name to samples."""

    def time(self, workload: Workload, opened: Opener) -> None:
        """Add a batch of rounds at one workload.

        Raises:
            Failed: a side fails, or a timed output is wrong.
        """
        samples = self.samples.setdefault(workload.name, Samples())
        timing.run(opened(workload), samples, self._budget, self._gauge)

    def weigh(self, workload: Workload, opened: Opener) -> None:
        """Add a batch of energy readings at a workload that was timed; of the version and the best one alone.

        Raises:
            Failed: a side fails, or is no CUDA graph; a result is wrong, or replayed in no plausible time.
            MachineFailed: the GPU's counter stands still.
        """
        if self._gauge is None:
            raise AssertionError("a processor has no energy counter")
        energy.read(opened(workload), self.samples[workload.name], self._gauge)

    def settle(
        self,
        time: Callable[[Workload], None],
        measurement: Measurement,
        thresholds: Thresholds,
        repeats: int = 0,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Standing:
        """Time all workloads, and again until the decision is settled.

        Args:
            time: times one workload, by `self.time`, and has it weighed where energy decides.
            measurement: this machine's, with its A/A floor.
            thresholds: the campaign's.
            repeats: what counts as repeats of the timing before this.
            tell: where progress is told.
        """
        while True:
            for workload in self.workloads:
                time(workload)
            standing = self.standing(measurement, thresholds, repeats)
            if standing.settled:
                return standing
            repeats += 1
            tell(f"timing: repeat {repeats} of {thresholds.max_repeats}")

    def timings(
        self, project: Project, page: HardwarePage, measurement: Measurement, file: DefinitionFile, device: str
    ) -> dict[str, Timing]:
        """The record of every workload's times against the roofline."""
        found = {}
        for workload in self.workloads:
            work = file.definition.work(workload)
            roofline = hardware.roofline(project, page, measurement, work, workload.dtype)
            found[workload.name] = timing.summarise(self.samples[workload.name], roofline, device)
        return found

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Geometric means over the workloads, against each other side."""
        sides = [name for name in next(iter(self.samples.values())).seconds if name != SOLUTION]
        return tuple(
            statistics.geometric_mean(
                {name: (s.seconds[SOLUTION], s.seconds[side]) for name, s in self.samples.items()}, side
            )
            for side in sides
        )

    def energy(self) -> Energy | None:
        """Joules a call and what they come to; None where none were read."""
        read = {name: samples.joules for name, samples in self.samples.items() if samples.joules}
        return energy.summarise(read) if read else None

    def standing(self, measurement: Measurement, thresholds: Thresholds, repeats: int) -> Standing:
        """Where the comparison with the best version stands; a baseline has none and is settled."""
        against = next((a for a in self.aggregates() if a.against == BEST), None)
        if against is None:
            return Standing(True, decision.baseline())
        return decision.decide(
            against,
            {name: _best_of(samples) for name, samples in self.samples.items()},
            floor(measurement),
            thresholds,
            repeats,
            self.energy(),
        )

    def notes(self, measurement: Measurement) -> list[str]:
        """What a reader of the times must know."""
        found = []
        if measurement.noise is None:
            found.append(f"no A/A floor was measured on this machine; {FALLBACK_FLOOR:.0%} assumed")
        for name, samples in self.samples.items():
            found += [f"{name}: {side} is no CUDA graph ({why}): all sides were launched call by call"
                      for side, why in samples.eager.items()]  # fmt: skip
            limited = sorted({words for one in samples.readings for words in one.limited})
            if limited:
                found.append(f"{name}: the GPU held its clocks down: {', '.join(limited)}")
            if not samples.cold:
                found.append(f"{name}: its tensors fit the L2 cache: timed warm")
        return found


def _best_of(samples: Samples) -> Comparison:
    return timing.compare(BEST, samples.seconds[SOLUTION], samples.seconds[BEST])
