"""Edits at large sizes: small parts of inputs change places, and what depends on them must follow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.definition import shape_class
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import edits
from warpsmith.lab.grading import correctness, rows, shapes
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator import input_rules
from warpsmith.lab.timing.session import SOLUTION, Session

_MANY = (shapes.GUIDED, shapes.FAR)
"""Classes of shapes of which a judgement may draw many."""


class EditedCall(NamedTuple):
    """Graded call after an edit in place."""

    grade: Grade
    """Its grade."""
    description: str
    """Edit that was made."""
    axis: str | None
    """Axis of which some rows were graded; None if all were."""
    rows: Sequence[int]
    """Those rows."""


def call_after_edits(session: Session) -> Iterator[EditedCall]:
    """Exchange small parts of inputs in place, one after the other; grade a call after each.

    As when an optimizer updates a few rows of a table, next to nothing changes, so a fingerprint of samples misses
    it, and a sum without an order too. Slot 0 was called on its inputs last.

    Raises:
        SideFailed: as `Session.grade_last_call`.
    """
    for name, kind in _draw_exchanges(session):
        for _ in range(gate_rules.DRAW_TRIES):
            call = _call_after_edit(session, name, kind)
            if call is None or not call.grade.near_miss:
                break
        if call:
            yield call


def _draw_exchanges(session: Session) -> list[tuple[str, edits.EditKind]]:
    """Draw exchanges of elements and of slices of some weights, and one of another input; one of each weight at
    shapes of which there are many."""
    chance, drawn, specs = random.SystemRandom(), session.drawn[0], session.file.definition.tensor_inputs
    kinds = {name: sorted(set(edits.list_exchanges(session, name, tensor))) for name, tensor in drawn.items()}
    weights = [name for name in drawn if specs[name].role == "weight" and kinds[name]]
    others = [name for name in drawn if specs[name].role != "weight" and kinds[name]]
    count = 1 if shape_class(session.workload.name) in _MANY else 2
    chosen = chance.sample(weights, min(len(weights), input_rules.EDITED_WEIGHTS))
    pairs = [(name, kind) for name in chosen for kind in chance.sample(kinds[name], min(len(kinds[name]), count))]
    return pairs + [(name, chance.choice(kinds[name])) for name in chance.sample(others, min(len(others), 1))]


def _call_after_edit(session: Session, name: str, kind: edits.EditKind) -> EditedCall | None:
    """Exchange two parts of an input, and grade the rows that hold them or, if they are in none, all that depends
    on them; None where the reference takes too long for that, or misses its bound."""
    definition, drawn = session.file.definition, session.drawn[0]
    axis, shape = rows.find_row_axis(session.file), definition.tensor_inputs[name].shape
    exchange = edits.draw_exchange(drawn[name], kind)
    positions = exchange.positions(shape.index(axis)) if axis in shape else []
    description = f"two {'slices' if kind == 'slices' else 'elements'} of {name} exchanged in place"
    is_small = definition.elements(session.workload) <= input_rules.EDITED_WHOLE
    if axis and (positions or not is_small):
        size = session.workload.axes[axis]
        chosen = positions or rows.sample_rows(size, definition.elements(session.workload))
        session.write_inputs(0, {**drawn, name: exchange.apply(drawn[name])})
        grade = session.call_and_grade_rows(SOLUTION, axis, chosen, whole=False)
        return EditedCall(grade, description, axis, chosen)
    if not is_small:
        return None
    _write_visible_edit(session, name, kind)
    grade = session.call_and_grade(SOLUTION)
    if grade.status is not Status.PASSED and session.grade_reference().status is not Status.PASSED:
        return None
    return EditedCall(grade, description, None, ())


def _write_visible_edit(session: Session, name: str, kind: edits.EditKind) -> None:
    """Write an exchange with which the result of the call before is wrong; the last one of several if none is so.

    A call may read a few rows of a table. Shapes of which there are many get a single draw.
    """
    drawn, is_one_of_many = session.drawn[0], shape_class(session.workload.name) in _MANY
    before = {output: tensor.clone() for output, tensor in session.fetch_outputs(SOLUTION, 0).items()}
    for _ in range(1 if is_one_of_many else input_rules.EDIT_DRAWS):
        session.write_inputs(0, {**drawn, name: edits.draw_exchange(drawn[name], kind).apply(drawn[name])})
        if correctness.grade_outputs(session.truth(0), before).status is not Status.PASSED:
            return
