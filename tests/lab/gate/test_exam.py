"""Correctness check of one solution: number of calls, layouts, repeated calls, and calls after other sizes."""

from __future__ import annotations

import itertools

import pytest
from lab_samples import HONEST, SQUARE, kernel

from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.gate import correctness_check
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules, inputs
from warpsmith.lab.operator.values.distributions import ALONE, MASKS
from warpsmith.lab.workers.side import SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

ROWS = (
    SQUARE.replace('"x": TensorSpec(shape=("n",))', '"x": TensorSpec(shape=("n", 40), layout="any")')
    .replace('"y": TensorSpec(shape=("n",))', '"y": TensorSpec(shape=("n", 40))')
    .replace('Workload(name="small", axes={"n": 1000})',
             'Workload(name="odd", axes={"n": 7}, set="odd"), Workload(name="small", axes={"n": 100})')
)  # fmt: skip
"""Squares of rows whose memory layout callers may choose."""


@pytest.fixture
def check_of(seat, workshop):
    """`check_of(source, definition)`: a correctness check that has graded nothing yet."""

    def make(source, text=SQUARE):
        found = seat(workshop.load("square", text), source)
        return CorrectnessCheck(
            found.file, found.arenas, found.side, "cpu", found.seed
        ), found.file.definition.workloads

    return make


def failure(call, *arguments):
    with pytest.raises(SideFailed) as caught:
        call(*arguments)
    return caught.value.status, caught.value.message


def test_an_honest_solution_is_graded_and_summed_up(check_of):
    one, (small, large) = check_of(kernel(HONEST))
    notes: list[str] = []
    one.check_workload(small, notes)
    one.check_workload(large, notes)
    one.check_again(small)
    assert notes == []
    assert {name: len(grades) for name, grades in one.grades.items()} == {"small": 5, "large": 4}
    found = one.summary("small", one.grades["large"])
    assert found.calls == 9
    assert found.repeat == 0
    assert 0 < found.reordered < 1
    assert 0 < found.worst < 1


def test_an_interpreter_spreads_the_distributions_over_three_odd_sizes(check_of):
    one, (odd, *_) = check_of(kernel(HONEST), ROWS)
    every = (*one.open_session(odd).inputs.adversarial_distributions, *MASKS)
    one._turns = itertools.cycle(range(3))
    shares = [list(one._adversarial(one.open_session(odd))) for _ in range(4)]
    assert shares[3] == shares[0]
    assert sorted(name for share in shares[:3] for name in share) == sorted(every)
    assert max(map(len, shares)) <= len(every) / 3 + 1


def test_two_calls_that_differ_by_more_than_rounding(check_of):
    # The second of two calls on the same inputs is off; every graded call is right.
    body = "static double last = 0; double sum = 0; for (int64_t i = 0; i < n; ++i) sum += x[i];" + HONEST
    one, (small, _) = check_of(kernel(body + "if (sum == last) y[0] *= 1.001f; last = sum;"))
    status, message = failure(one.check_workload, small, [])
    assert status is Status.NOT_REPRODUCIBLE
    assert "times the bound" in message


def test_how_far_two_calls_are_apart_is_kept(check_of):
    body = HONEST.replace("x[i] * x[i]", "x[i] * x[i] * (1 + 6e-8f * (calls % 2))")
    one, (small, _) = check_of(kernel("static int calls = 0; ++calls; " + body))
    one.check_workload(small, [])
    assert 0 < one.summary("small").repeat < 1


LOST = SQUARE.replace('axes={"n": 1000})', 'axes={"n": 1000}, set="odd")').replace(
    "return x * x", "return x * x + ((x + 1e12) - 1e12 - x) * (x.abs() > 100)"
)
"""A definition whose reference loses large values, but only in its own precision."""


def test_where_the_reference_misses_its_bound_a_solution_that_holds_it_is_graded_all_the_same(check_of):
    notes: list[str] = []
    one, (small, _) = check_of(kernel(HONEST), LOST)
    one.check_workload(small, notes)
    assert notes == []
    every = one.open_session(small).inputs.adversarial_distributions
    assert len(one.grades["small"]) == 2 + len(every) - len(ALONE)  # whose squares overflow


def test_where_the_reference_misses_its_bound_another_is_not_held_to_it(check_of, monkeypatch):
    monkeypatch.setattr(inputs, "ADVERSARIAL", ("large",))
    large_off = kernel(HONEST.replace("x[i] * x[i]", "x[i] * x[i] * (x[i] * x[i] > 1e4f ? 1.1f : 1.0f)"))
    notes: list[str] = []
    one, (small, _) = check_of(large_off, LOST)
    one.check_workload(small, notes)
    assert any(note.startswith("small: large left out") for note in notes)
    one, (small, _) = check_of(large_off, LOST.replace("(x + 1e12) - 1e12 - x", "0"))
    status, message = failure(one.check_workload, small, [])
    assert status is Status.INCORRECT_NUMERICAL
    assert "inputs)" in message


def test_other_callers_call_at_each_size(check_of):
    one, (small, large) = check_of(kernel(HONEST))
    one.check_workload(small, [])
    one.check_larger(large.model_copy(update={"set": "full"}), [])
    (callers,) = (check for check in one.end() if check.name == "other callers")
    assert sum(int(clause.split()[0]) for clause in callers.how.removeprefix("graded calls: ").split(", ")
               if clause[0].isdigit()) == 6  # fmt: skip


def test_a_far_shape_is_left_out_where_a_call_or_its_reference_is_slow(check_of, monkeypatch):
    busy = "for (volatile int64_t i = 0; i < 20000000 * n; ++i) {}"
    slow = SQUARE.replace("return x * x", "[x.sum() for _ in range(1000 * len(x))]; return x * x")
    for text, body, culprit in ((slow, HONEST, "its reference"), (SQUARE, busy + HONEST, "a call")):
        one, (_, large) = check_of(kernel(body), text)
        notes: list[str] = []
        assert not one.check_larger(large.model_copy(update={"name": "far-n-large", "set": "full"}), notes)
        assert f"{culprit} would take about" in notes[-1]
    one, (_, large) = check_of(kernel(HONEST))
    assert one.check_larger(large.model_copy(update={"name": "far-n-large", "set": "full"}), [])


def test_a_version_that_is_slow_at_parts_alone_is_called_at_far_shapes(check_of):
    busy = "if (n < 100) for (volatile int64_t i = 0; i < 400000000; ++i) {}"
    one, (_, large) = check_of(kernel(busy + HONEST + "if (n > 2000) y[0] = -1;"))
    with pytest.raises(SideFailed, match=r"y\[0\] is -1"):
        one.check_larger(large.model_copy(update={"name": "far-n-large", "set": "full"}), [])


def test_operations_say_how_a_call_grows(check_of, monkeypatch):
    monkeypatch.setattr(input_rules, "CALL_START", -0.01)  # every call takes that at least
    monkeypatch.setattr(input_rules, "CALL_SECONDS", 100.0)
    one, (_, large) = check_of(kernel(HONEST))
    far = large.model_copy(update={"name": "far-n-large"})
    assert one._costs.find_excess(far, 1.0) is None
    steep, _ = check_of(kernel(HONEST), SQUARE.replace('flops="n"', 'flops="n ** 2"'))
    assert "would take about" in steep._costs.find_excess(far, 1.0).reason


def test_what_larger_sizes_left_in_a_workspace_shows(check_of):
    body = """static float work[1 << 13]; for (int64_t i = 0; i < n; ++i) work[i] = x[i] * x[i];
      for (int64_t i = 0; i < n; ++i) y[i] = work[i]; y[n - 1] += work[n];"""
    one, (small, large) = check_of(kernel(body))
    one.check_workload(small, [])
    one.check_workload(large, [])
    status, message = failure(one.check_again, small)
    assert status is Status.INCORRECT_NUMERICAL
    assert "after larger sizes" in message


def test_layouts_that_callers_may_use_are_all_graded_at_odd_shapes_and_one_at_others(check_of, monkeypatch):
    strided = """for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < 40; ++j) {
      float v = x[i * x_.stride(0) + j * x_.stride(1)]; y[i * 40 + j] = v * v; }"""
    one, (odd, small, _) = check_of(kernel(strided), ROWS)
    one.check_workload(small, [])
    assert len(one.grades["small"]) in (4 + 2, 4 + 2 + 1)  # one is adversarial, if it can be graded
    one.check_workload(odd, [])
    assert len(one.grades["odd"]) >= 2 * 4 + 8  # four layouts, and the adversarial distributions
    flat, (odd, small, _) = check_of(kernel(HONEST.replace("i < n", "i < 40 * n")), ROWS)
    monkeypatch.setattr(correctness_check, "list_layouts", lambda *_: ("contiguous", "padded"))
    for workload in (odd, small):
        status, message = failure(flat.check_workload, workload, [])
        assert status is Status.INCORRECT_NUMERICAL
        assert "(normal, padded inputs)" in message


def test_layouts_of_large_sizes_are_left_out(check_of, monkeypatch):
    monkeypatch.setattr(input_rules, "STRIDED_ELEMENTS", {"cpu": 1})
    flat, (_, small, _) = check_of(kernel(HONEST.replace("i < n", "i < 40 * n")), ROWS)
    flat.check_workload(small, [])
    assert len(flat.grades["small"]) == 4


class Late:
    """Late calls with scripted grades, which record what a session had drawn by then."""

    def __init__(self, check_of, *statuses):
        self.check_of, self.statuses, self.seen = check_of, statuses, []
        self.checks = ()

    def calls(self, one):
        graded = len(self.check_of.grades[one.workload.name])
        self.seen.append((one.workload.name, graded, one.slots, one.correlated))
        for status in self.statuses:
            yield Grade(status, 0.0, 0.0, detail="wrong by much"), "called late"


def test_late_calls_are_made_once_a_workload_between_plain_calls_and_adversarial_ones(check_of):
    strided = """for (int64_t i = 0; i < n; ++i) for (int64_t j = 0; j < 40; ++j) {
      float v = x[i * x_.stride(0) + j * x_.stride(1)]; y[i * 40 + j] = v * v; }"""
    one, (odd, *_) = check_of(kernel(strided), ROWS)
    one.check_workload(odd, [])
    plain = len(one.grades["odd"])
    one, (odd, *_) = check_of(kernel(strided), ROWS)
    one._late_calls = Late(one, Status.PASSED, Status.PASSED)
    one.check_workload(odd, [])
    assert one._late_calls.seen == [("odd", 2, 2, False)]
    assert len(one.grades["odd"]) == plain + 2


def test_a_late_call_that_is_wrong_ends_the_exam(check_of):
    one, (small, _) = check_of(kernel(HONEST))
    one._late_calls = Late(one, Status.PASSED, Status.INCORRECT_NUMERICAL, Status.PASSED)
    assert failure(one.check_workload, small, []) == (Status.INCORRECT_NUMERICAL, "wrong by much (called late)")
    assert [found.status for found in one.grades["small"]] == ["PASSED"] * 5 + ["INCORRECT_NUMERICAL"]


def test_a_tolerance_that_rounding_never_comes_near_is_noted(check_of):
    wide = SQUARE.replace('flops="n",', 'flops="n", tolerance=Tolerance(accumulate="float16"),')
    one, (small, _) = check_of(kernel(HONEST), wide)
    notes: list[str] = []
    one.check_workload(small, notes)
    assert len(notes) == 1
    assert "the tolerance is wide" in notes[0]


def test_so_few_outputs_say_nothing_of_the_tolerance(check_of):
    wide = SQUARE.replace('flops="n",', 'flops="n", tolerance=Tolerance(accumulate="float16"),')
    one, (small, _) = check_of(kernel(HONEST), wide.replace('"n": 1000', '"n": 9'))
    notes: list[str] = []
    one.check_workload(small, notes)
    assert notes == []


def test_a_reference_that_misses_its_bound_is_the_definitions_fault(check_of):
    one, (small, _) = check_of(kernel(HONEST), SQUARE.replace("return x * x", "return (x + 1e4) - 1e4"))
    with pytest.raises(MachineFailed, match="the tolerance of the definition is wrong"):
        one.check_workload(small, [])
