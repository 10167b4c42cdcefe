"""Other values: distributions that are drawn, and calls on them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import other_values
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.operator.values.distributions import ADVERSARIAL, MIXED_ROWS, UNMIXED
from warpsmith.lab.workers.side import SideFailed

RIGHT, WRONG = Grade(Status.PASSED, 0.0, 0.0), Grade(Status.INCORRECT_NUMERICAL, 9.0, 9.0)


@pytest.fixture
def make_session():
    """`make_session(grade, reference, finite)`: a stand-in that notes the distributions of its calls."""

    def make(grade=RIGHT, reference=RIGHT, finite=True, available=ADVERSARIAL, elements=1000):
        filled: list[str] = []
        return SimpleNamespace(
            file=SimpleNamespace(definition=SimpleNamespace(elements=lambda _: elements)),
            workload=None,
            device="cuda",
            inputs=SimpleNamespace(adversarial_distributions=available),
            fill_inputs=lambda name, slots: filled.append(name),
            truth=lambda _: SimpleNamespace(is_finite=finite),
            grade_reference=lambda: reference,
            call_and_grade=lambda _: grade,
            filled=filled,
        )

    return make


def test_rows_of_all_and_some_more(make_session):
    drawn = [other_values.draw_other_values(make_session(), 2) for _ in range(60)]
    assert all(names[0] == MIXED_ROWS for names in drawn)
    assert {len(names) for names in drawn} == {3}
    assert len({name for names in drawn for name in names}) > len(ADVERSARIAL) / 2
    assert not {name for names in drawn for name in names}.intersection(UNMIXED)
    assert other_values.draw_other_values(make_session(available=()), 2) == ()
    assert other_values.draw_other_values(make_session(elements=1 << 29), 2) == (MIXED_ROWS,)


def test_a_wrong_call_is_refused_where_the_reference_holds(make_session):
    with pytest.raises(SideFailed, match="mixed_rows inputs after all"):
        other_values.require_pass_on_others(make_session(WRONG), 1, "after all")
    for excused in (make_session(WRONG, WRONG), make_session(WRONG, finite=False), make_session()):
        other_values.require_pass_on_others(excused, 1, "after all")
        assert len(excused.filled) == 2


def test_a_near_miss_is_drawn_again(make_session):
    near = Grade(Status.INCORRECT_NUMERICAL, 1.5, 1.5)
    session = make_session(near)
    assert near.near_miss, "the sample is one"
    with pytest.raises(SideFailed):
        other_values.require_pass_on_others(session, 0, "")
    assert len(session.filled) == gate_rules.DRAW_TRIES


def test_values_count_where_the_reference_holds(make_session):
    assert other_values.fill_other_values(make_session()) in {MIXED_ROWS, *ADVERSARIAL}
    assert not other_values.fill_other_values(make_session(reference=WRONG))
    assert not other_values.fill_other_values(make_session(finite=False))
    assert not other_values.fill_other_values(make_session(available=()))
