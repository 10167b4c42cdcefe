"""The exam: one solution's outputs graded at one workload after another, on inputs that nobody saw before."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Correctness, Status
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate.late_calls import LateCalls
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import session
from warpsmith.lab.timing.session import SOLUTION, Arenas, Session
from warpsmith.lab.workers.side import Failed, Side

_TURNS = 3
"""Odd workloads over which an interpreter, a thousand times slower, spreads the adversarial distributions."""

_FEW = 64
"""Output elements below which the largest error is small by chance, and says nothing of the bound."""


@dataclass
class Extremes:
    """The largest at one workload, as shares of the bound."""

    reordered: float = 0.0
    """Error of the reference in its own precision, its sums in other orders."""
    repeat: float = 0.0
    """Difference of two calls on the same inputs."""


class Exam:
    """Grades so far."""

    def __init__(
        self,
        file: DefinitionFile,
        arenas: Arenas,
        side: Side,
        device: str,
        fresh_seed: Callable[[], int],
        interpreted: bool = False,
    ) -> None:
        self._file, self._arenas, self._side, self._device = file, arenas, side, device
        self._fresh_seed = fresh_seed
        self._late = LateCalls(device)
        self._turns = itertools.cycle(range(_TURNS)) if interpreted else None
        self.grades: dict[str, list[Grade]] = defaultdict(list)
        """Workload name to the grades of its calls."""
        self.extremes: dict[str, Extremes] = defaultdict(Extremes)
        """Workload name to what was largest there."""
        self.kernels: dict[str, set[str]] = {}
        """Workload name to the compiled kernels that it was the first to launch; on a GPU only."""

    def session(self, workload: Workload, layout: str = "contiguous") -> Session:
        """A session of the solution alone, with the few slots that checking takes."""
        sides = {SOLUTION: self._side}
        seed, count = self._fresh_seed(), session.CHECKED_SLOTS
        return Session(
            self._file, workload, self._arenas, sides, seed, self._device, count=count, layout=layout
        )  # fmt: skip

    def sit(self, workload: Workload, notes: list[str]) -> None:
        """Grade the solution at a workload, in every layout that callers may use.

        Raises:
            Failed: it is wrong there.
            MachineFailed: the definition's tolerance is.
        """
        for layout in session.layouts(self._file, workload):
            self._check(self.session(workload, layout), layout, notes)
        if self._device != "cpu":
            self._reached(workload)

    def revisit(self, workload: Workload) -> None:
        """Grade once more, after other sizes: what they left in a workspace must not matter.

        Raises:
            Failed: it is wrong now.
        """
        one = self.session(workload)
        one.fill()
        self._keep(one, "normal, after larger sizes")

    def summary(self, name: str, timed: Sequence[Grade] = ()) -> Correctness:
        """The record of one workload, with the grades of its timed calls."""
        found = self.extremes[name]
        grades = [*self.grades[name], *timed]
        return correctness.summarise(grades, reordered=found.reordered, repeat=found.repeat)

    @property
    def checks(self) -> tuple[Check, ...]:
        """What ran beside plain calls."""
        return self._late.checks

    def _check(self, one: Session, layout: str, notes: list[str]) -> None:
        """Fresh inputs twice in the same memory, and those again; at odd shapes every adversarial distribution."""
        name = one.workload.name
        at = "normal" if layout == "contiguous" else f"normal, {layout}"
        one.fill()
        itself = one.holds_itself()
        if itself.status is not Status.PASSED:
            raise MachineFailed(
                f"The reference misses its own bound at {name} ({itself.detail}): "
                "correct the tolerance of the definition."
            )
        extremes = self.extremes[name]
        extremes.reordered = max(extremes.reordered, itself.worst)
        outputs = sum(value.numel() for value in one.truth(0).values.values())
        if correctness.loose(itself.worst) and outputs >= _FEW:
            notes.append(f"{name}: rounding alone uses {itself.worst:.1e} of the bound: the tolerance is wide")
        self._keep(one, at)
        one.fill()
        self._keep(one, at)
        self._repeat(one, extremes)
        if layout != "contiguous":
            return
        for grade, how in self._late.calls(one):
            self._take(one, grade, how)
        for distribution in self._adversarial(one) if one.workload.set == "odd" else ():
            one.fill(distribution)
            grade = one.check(SOLUTION)
            if grade.status is Status.PASSED or one.holds_itself().status is Status.PASSED:
                self._take(one, grade, f"{distribution} inputs")
            else:
                notes.append(f"{name}: {distribution} left out, the reference itself misses the bound there")

    def _adversarial(self, one: Session) -> Sequence[str]:
        """All distributions; where each call is interpreted, the next share of them."""
        return (
            one.inputs.adversarial if self._turns is None else one.inputs.adversarial[next(self._turns) :: _TURNS]
        )

    def _keep(self, one: Session, distribution: str) -> None:
        self._take(one, one.check(SOLUTION), f"{distribution} inputs")

    def _take(self, one: Session, grade: Grade, how: str) -> None:
        self.grades[one.workload.name].append(grade)
        if grade.status is not Status.PASSED:
            raise Failed(grade.status, f"{grade.detail} ({how})")

    def _repeat(self, one: Session, extremes: Extremes) -> None:
        """The same inputs again: within the bound, or every bit the same where the definition asks for it.

        The worker's own memory is not filled before this call: it looks as the timed ones do.
        """
        first = {name: tensor.clone() for name, tensor in one.outputs(SOLUTION, 0).items()}
        one.poison()
        one.call(SOLUTION)
        second = one.outputs(SOLUTION, 0)
        share, failure = correctness.agree(first, second, one.truth(0), self._file.definition.deterministic)
        extremes.repeat = max(extremes.repeat, share)
        if failure:
            raise Failed(Status.NOT_REPRODUCIBLE, failure)

    def _reached(self, workload: Workload) -> None:
        loaded = {part.model_dump_json() for part in self._side.resources()}
        known: set[str] = set().union(*self.kernels.values())
        self.kernels[workload.name] = loaded - known
