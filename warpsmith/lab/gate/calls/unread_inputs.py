"""A call whose inputs hold NaN where the reference reads nothing: memory of padding need not be written."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.special_numbers import GradedCall
from warpsmith.lab.grading import shapes, unread
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import SOLUTION, Session

_DISTRIBUTION = "scaled_rows"
"""Values are as usual but for a factor a row, and labels are padded as they are under every adversarial one."""


def call_with_unread_nan(
    file: DefinitionFile, workload: Workload, open_session: Callable[[Workload], Session]
) -> GradedCall | None:
    """Make a call at a near or an odd workload; None where the reference reads all."""
    is_plain = workload.set == "odd" and shapes.shape_class(workload) in ("near", "declared")
    if not is_plain or not file.definition.elements(workload):
        return None
    session = open_session(workload)
    for attempt in range(gate_rules.DRAW_TRIES):
        session.fill_inputs(_DISTRIBUTION, slots=1)
        planted = unread.plant_nan(file, workload, session.drawn[0])
        if planted is None or session.grade_reference().status is not Status.PASSED:
            return None
        session.write_unread(0, planted)
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss or attempt == gate_rules.DRAW_TRIES - 1:
            return session, grade, f"{_DISTRIBUTION} inputs, NaN in what the reference does not read,"
    return None
