"""Other values: calls on inputs of an adversarial distribution, after many calls on normal ones, or where a check
has normal ones otherwise."""

from __future__ import annotations

import random

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.edits import require_pass
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.values.distributions import MIXED_ROWS, UNMIXED
from warpsmith.lab.timing.session import SOLUTION, Session


def draw_other_values(session: Session, count: int) -> tuple[str, ...]:
    """Draw adversarial distributions: rows that mix them, and `count` others, which large tensors have no room for
    beside themselves; none where inputs have none."""
    available = [name for name in session.inputs.adversarial_distributions if name not in UNMIXED]
    is_large = session.file.definition.elements(session.workload) > input_rules.WHOLE_ELEMENTS[session.device]
    drawn = () if is_large else random.SystemRandom().sample(available, min(count, len(available)))
    return (MIXED_ROWS, *drawn) if available else ()


def fill_other_values(session: Session) -> str:
    """Fill slot 0 from an adversarial distribution; return its name, or an empty string where the reference misses
    its bound or a result is not finite."""
    names = draw_other_values(session, 1)
    if not names:
        return ""
    name = random.SystemRandom().choice(names)
    session.fill_inputs(name, slots=1)
    holds = session.truth(0).is_finite and session.grade_reference().status is Status.PASSED
    return name if holds else ""


def require_pass_on_others(session: Session, count: int, when: str) -> None:
    """Grade calls on inputs of adversarial distributions where the reference holds, again after a near miss.

    Args:
        session: session of the version.
        count: distributions besides rows that mix them.
        when: what came before, for the message.

    Raises:
        SideFailed: a result is wrong.
    """
    for name in draw_other_values(session, count):
        grade = _grade_on(session, name)
        if grade and grade.status is not Status.PASSED and session.grade_reference().status is Status.PASSED:
            require_pass(grade, Status.INCORRECT_NUMERICAL, f"on {name} inputs {when}")


def _grade_on(session: Session, name: str) -> Grade | None:
    """Return the grade of a call on inputs of a distribution, again after a near miss; None where no result of
    finite numbers is drawn."""
    grade = None
    for _ in range(gate_rules.DRAW_TRIES):
        session.fill_inputs(name, slots=1)
        if not session.truth(0).is_finite:
            return None
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    return grade
