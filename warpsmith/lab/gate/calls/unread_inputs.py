"""A call whose inputs hold NaN and infinities where the reference reads nothing: padding need not be written."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.special_numbers import GradedCall
from warpsmith.lab.grading import shapes, unread
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.session import SOLUTION, Session

_DISTRIBUTION = "tiny"
"""No function is flat at small values, and labels are padded as they are under every adversarial distribution."""

_FINITE = re.compile(r"\b(nan|finite)\b", re.IGNORECASE)


def call_beside_unwritten(
    file: DefinitionFile, workload: Workload, open_session: Callable[[Workload], Session]
) -> GradedCall | None:
    """Make a call at a near or an odd workload; None where the reference reads all, and where a promise is about
    finite numbers."""
    is_plain = workload.set == "odd" and shapes.shape_class(workload) in ("near", "declared")
    is_promised = any(map(_FINITE.search, file.definition.constraints))
    if not is_plain or is_promised or not file.definition.elements(workload):
        return None
    session, grade = open_session(workload), None
    for _ in range(gate_rules.DRAW_TRIES):
        session.fill_inputs(_DISTRIBUTION, slots=1)
        planted = unread.plant_unwritten(file, workload, session.drawn[0], session.inputs.draw(_DISTRIBUTION))
        if planted is None or session.grade_reference().status is not Status.PASSED:
            continue
        session.write_unread(0, planted)
        grade = session.call_and_grade(SOLUTION)
        if not grade.near_miss:
            break
    description = f"{_DISTRIBUTION} inputs, NaN and infinities in what the reference does not read,"
    return (session, grade, description) if grade else None
