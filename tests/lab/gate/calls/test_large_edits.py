"""Edits at large sizes: a small part of an input changes, and the rows that show it are graded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from lab_samples import LINEAR, SAME_SHAPE, SAME_WEIGHT, linear_kernel

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import edits, large_edits
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.grading import shapes
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules
from warpsmith.lab.workers.side import SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

SAMPLED = f"""{SAME_SHAPE} && [&] {{
  for (int64_t i = 0; i < k * n; i += 97) if (kept[i] != w[i]) return false;
  return true; }}()"""
SUM = "uint64_t sum = 0; for (int64_t i = 0; i < k * n; ++i) sum += word_of(w[i]);"


@pytest.fixture
def call(seat, workshop):
    """`call(source)`: the calls after edits of a C++ version of the product."""

    def run(source):
        session = seat(workshop.load("linear", LINEAR), source).session()
        session.fill_inputs(slots=1)
        assert session.call_and_grade("solution").status is Status.PASSED
        return list(large_edits.call_after_edits(session))

    return run


@needs_compiler
@pytest.mark.parametrize("whole", [input_rules.EDITED_WHOLE, 0])
def test_an_honest_cache_follows_small_edits(call, monkeypatch, whole):
    monkeypatch.setattr(input_rules, "EDITED_WHOLE", whole)
    calls = call(linear_kernel(f"{SAME_SHAPE} && {SAME_WEIGHT}"))
    assert {each.grade.status for each in calls} == {Status.PASSED}
    assert [each.description.split()[3] for each in calls] == ["w", "w", "x"]
    assert {each.axis for each in calls if " w " in each.description} == ({None} if whole else {"m"})


@needs_compiler
@pytest.mark.parametrize("whole", [input_rules.EDITED_WHOLE, 0])
@pytest.mark.parametrize(
    ("is_known", "before", "keep"),
    [(SAMPLED, "", ""), (f"{SAME_SHAPE} && !key.empty() && key[0] == sum", SUM, "key = {sum};")],
)
def test_a_cache_that_overlooks_a_small_edit_is_wrong(call, monkeypatch, whole, is_known, before, keep):
    monkeypatch.setattr(input_rules, "EDITED_WHOLE", whole)
    statuses = [each.grade.status for each in call(linear_kernel(is_known, before, keep))]
    assert Status.INCORRECT_NUMERICAL in statuses


@needs_compiler
def test_a_larger_call_is_edited(seat, workshop):
    place = seat(workshop.load("linear", LINEAR), linear_kernel(SAMPLED))
    check = CorrectnessCheck(place.file, place.arenas, place.side, "cpu", place.seed)
    with pytest.raises(SideFailed, match=r"two (elements|slices) of w exchanged in place"):
        check.check_larger(place.file.definition.workloads[1], [])


@pytest.mark.parametrize(
    ("name", "passed", "writes"),
    [
        ("larger-one", [False], 1),
        ("larger-one", [True, False], 2),
        ("larger-one", [True] * 9, input_rules.EDIT_DRAWS),
        (f"{shapes.GUIDED}-0", [True] * 9, 1),
    ],
)
def test_an_edit_that_shows_nothing_is_drawn_again(monkeypatch, name, passed, writes):
    grades = iter(Status.PASSED if each else Status.INCORRECT_NUMERICAL for each in passed)
    monkeypatch.setattr(edits, "draw_exchange", lambda *_: SimpleNamespace(apply=lambda tensor: tensor))
    monkeypatch.setattr(large_edits.correctness, "grade_outputs", lambda *_: Grade(next(grades), 0.0, 0.0))
    written = []
    session = SimpleNamespace(
        workload=Workload(name=name, axes={}),
        drawn=[{"w": 1}],
        truth=lambda _: None,
        fetch_outputs=lambda *_: {},
        write_inputs=lambda _, values: written.append(values),
    )
    large_edits._write_visible_edit(session, "w", "exchange")
    assert len(written) == writes
