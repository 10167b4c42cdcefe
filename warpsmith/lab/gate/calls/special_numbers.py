"""Calls whose numbers a kernel may treat by themselves: all at a limit at once, at sizes, or equal to elements."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload, shape_class
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import planted_values
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.scalar_values import Scalars, list_nearby_scalars, list_special_scalars
from warpsmith.lab.timing.session import SOLUTION, Session

GradedCall = tuple[Session, Grade, str]
"""Session of a call, its grade, and what it was."""


class SpecialNumbers:
    """Calls with special numbers of one solution, each kind once in a judgement."""

    def __init__(self, file: DefinitionFile, open_session: Callable[[Workload], Session]) -> None:
        self._file, self._open_session = file, open_session
        self._kinds: set[tuple[str, ...]] = set()

    def calls(self, workload: Workload) -> Iterator[GradedCall]:
        """Make some calls at a near or declared workload, unless it is large: with numbers near each other in
        turn, with numbers that are special together, or sizes of the call, and with elements equal to numbers."""
        definition = self._file.definition
        is_plain = shape_class(workload.name) == "near" or workload in definition.workloads
        if (
            not is_plain
            or not 0 < definition.elements(workload) <= input_rules.NEAR_ROOM * input_rules.NEAR_ELEMENTS
        ):
            return
        chance = random.SystemRandom()
        yield from self._call_nearby(workload)
        special = [each for each in list_special_scalars(self._file, workload) if each.kind not in self._kinds]
        for each in chance.sample(special, min(len(special), input_rules.SPECIAL_CALLS)):
            call = workload.model_copy(update={"scalars": dict(each.scalars)})
            if graded := self._grade_normal(call):
                self._kinds.add(each.kind)
                yield *graded, f"normal inputs, {_describe(each.scalars)},"
        rounded = planted_values.round_scalars(self._file, workload)
        if rounded and self._is_exact():
            call = workload.model_copy(update={"scalars": {**workload.scalars, **rounded}})
            if graded := self._grade_planted(call, chance):
                yield *graded, f"elements equal to {_describe(rounded)} among the inputs"

    def _call_nearby(self, workload: Workload) -> Iterator[GradedCall]:
        """Make a call with each of some numbers near each other, once in a judgement."""
        nearby = [] if ("nearby",) in self._kinds else list_nearby_scalars(self._file, workload)
        for number, scalars in enumerate(nearby):
            call = workload.model_copy(update={"scalars": dict(scalars)})
            if graded := self._grade_normal(call):
                self._kinds.add(("nearby",))
                yield *graded, f"normal inputs, {_describe(scalars)}{', after numbers near these' * bool(number)},"

    def _is_exact(self) -> bool:
        """Return False where the definition lets some elements be wrong, as choices of rounding are."""
        definition = self._file.definition
        return all(definition.tolerance_of(name).required_match == 1 for name in definition.outputs)

    def _grade_normal(self, workload: Workload) -> tuple[Session, Grade] | None:
        """Return the grade of a call on normal inputs; None if the reference does not take its numbers."""
        session = self._open_session(workload)
        for _ in range(gate_rules.DRAW_TRIES):
            try:
                session.fill_inputs(slots=1)
                if session.grade_reference().status is not Status.PASSED:
                    return None
            except BadDefinition:
                return None
            grade = session.call_and_grade(SOLUTION)
            if not grade.near_miss:
                break
        return session, grade

    def _grade_planted(self, workload: Workload, chance: random.Random) -> tuple[Session, Grade] | None:
        """Return the grade of a call on inputs with elements equal to its numbers; None where no input may hold
        them, a result is infinite beside them, or the reference does not take the rounded numbers."""
        session = self._open_session(workload)
        for _ in range(gate_rules.DRAW_TRIES):
            try:
                session.fill_inputs(slots=1)
                drawn = session.drawn[0]
                planted = planted_values.plant_scalars(self._file, workload, drawn, session.inputs, chance)
                if not planted:
                    return None
                session.write_inputs(0, {**drawn, **planted})
                session.correlated = True
                if not session.truth(0).is_finite or session.grade_reference().status is not Status.PASSED:
                    return None
            except BadDefinition:
                return None
            grade = session.call_and_grade(SOLUTION)
            if not grade.near_miss:
                break
        return session, grade


def _describe(scalars: Scalars) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in scalars.items())
