"""Tests of the distributions that a correctness check grades at each workload."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lab_samples import SQUARE, kernel

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.call_costs import Excess
from warpsmith.lab.gate.correctness_check import CorrectnessCheck, Extremes
from warpsmith.lab.grading import correctness
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.operator.values.distributions import (
    ADVERSARIAL,
    ALONE,
    FULL,
    IN_RANGE,
    MASKED,
    MASKED_ALONG,
    MASKED_ROWS,
    MASKS,
    PADDED_ROWS,
    UNMIXED,
)
from warpsmith.lab.workers.side import SideFailed

REPOSITORY = Path(__file__).parents[3]


def file_of(outputs: str, *inputs: str, promises: tuple[str, ...] = ()) -> SimpleNamespace:
    """A definition file of inputs and one output of given types, with promises in words."""
    definition = SimpleNamespace(
        tensor_inputs=dict(enumerate(inputs)),
        outputs={"y": outputs},
        dtype=lambda spec, _: spec,
        constraints=promises,
    )
    return SimpleNamespace(definition=definition)


FLOATS = file_of("float32", "float32")


@pytest.mark.parametrize(
    ("workload_set", "own_inputs", "interpreted", "expected"),
    [
        ("odd", False, False, (*ADVERSARIAL, *MASKS)),
        ("representative", False, True, ()),
        ("representative", True, False, ()),
    ],
)
def test_odd_workloads_get_all_distributions(workload_set, own_inputs, interpreted, expected):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1, interpreted)
    distributions = () if own_inputs else ADVERSARIAL
    session = SimpleNamespace(
        workload=SimpleNamespace(set=workload_set, name="one"),
        inputs=SimpleNamespace(adversarial_distributions=distributions, has_square=False),
    )
    assert tuple(check._adversarial(session)) == expected


@pytest.mark.parametrize("workload_set", ["representative", "full"])
def test_large_workloads_get_mixed_rows_and_one_that_does_not_mix(workload_set):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        workload=SimpleNamespace(set=workload_set, name="one"),
        inputs=SimpleNamespace(adversarial_distributions=ADVERSARIAL, has_square=False),
    )
    drawn = {tuple(check._adversarial(session)) for _ in range(40)}
    assert drawn == {("mixed_rows", name) for name in set(UNMIXED) - set(ALONE)}


def test_drawn_shapes_get_some_distributions_by_chance():
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        workload=SimpleNamespace(set="odd", name="near-one"),
        inputs=SimpleNamespace(adversarial_distributions=ADVERSARIAL, has_square=False),
    )
    drawn = [tuple(check._adversarial(session)) for _ in range(40)]
    assert {len(some) for some in drawn} == {input_rules.DRAWN_DISTRIBUTIONS}
    assert {name for some in drawn for name in some} == {*ADVERSARIAL, *MASKS}


@pytest.mark.parametrize(("workload_set", "name"), [("full", "far-one"), ("odd", "near-one"), ("odd", "one")])
def test_declared_ranges_have_their_distribution_at_every_size(workload_set, name):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        workload=SimpleNamespace(set=workload_set, name=name),
        inputs=SimpleNamespace(adversarial_distributions=(*ADVERSARIAL, IN_RANGE), has_square=False),
    )
    assert all(list(check._adversarial(session)).count(IN_RANGE) == 1 for _ in range(20))


@pytest.mark.parametrize(("name", "count"), [("far-one", 1), ("middle-one", 0)])
def test_far_shapes_have_full_integers(name, count):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        workload=SimpleNamespace(set="full", name=name),
        inputs=SimpleNamespace(adversarial_distributions=(*ADVERSARIAL, FULL), has_square=False),
    )
    assert all(list(check._adversarial(session)).count(FULL) == count for _ in range(20))


@pytest.mark.parametrize(
    ("near", "draws"), [([False], 1), ([True, False], 2), ([True] * 9, gate_rules.DRAW_TRIES)]
)
def test_a_near_miss_is_drawn_again(near, draws):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    drawn = []
    grades = [SimpleNamespace(near_miss=miss, number=number) for number, miss in enumerate(near, 1)]

    def fill_inputs(distribution: str, *, slots: int) -> None:
        assert slots == 1
        drawn.append(distribution)

    session = SimpleNamespace(fill_inputs=fill_inputs, call_and_grade=lambda _: grades[len(drawn) - 1])
    assert check._grade_distribution(session, "far").number == draws
    assert drawn == ["far"] * draws


@pytest.mark.parametrize(("finite", "draws"), [([True], 1), ([False, True], 2), ([False, False], 2)])
def test_masks_that_leave_an_infinite_result_are_drawn_once_more(finite, draws):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    drawn = []
    session = SimpleNamespace(
        fill_inputs=lambda name, *, slots: drawn.append((name, slots)),
        truth=lambda _: SimpleNamespace(is_finite=finite[len(drawn) - 1], has_nan=True),
        drawn=[{}],
        call_and_grade=lambda _, **__: SimpleNamespace(near_miss=False),
    )
    grade = check._grade_distribution(session, MASKED_ALONG)
    assert drawn == [(MASKED_ALONG, 1)] * draws
    assert (grade is None) is not finite[-1]


@pytest.mark.parametrize(
    ("values", "outputs", "status"),
    [
        ([1.0, -inf], [1.0, -inf], Status.PASSED),
        ([1.0, -inf], [1.0, nan], Status.INCORRECT_NUMERICAL),
        ([1.0, inf], [nan, inf], Status.INCORRECT_NUMERICAL),
        ([1.0, -inf], [1.0, 0.0], Status.INCORRECT_NUMERICAL),
        ([1.0, nan], [1.0, nan], None),
    ],
    ids=["right", "no infinity", "wrong", "a number for infinity", "no number"],
)
def test_finite_results_are_graded_beside_infinite_ones(values, outputs, status):
    truth = correctness.Truth(
        {"y": torch.tensor(values, dtype=torch.float64)}, {"y": torch.tensor([1e-6, 1e-6])}, {"y": 1.0}, {"y": 1.0}
    )
    session = SimpleNamespace(
        truth=lambda _: truth,
        call_and_grade=lambda _: correctness.grade_outputs(truth, {"y": torch.tensor(outputs)}),
    )
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    grade = check._grade_where_defined(session, MASKED)
    assert (grade and grade.status) is status
    assert check._grade_where_defined(session, IN_RANGE) is None


@pytest.mark.parametrize("name", ["one", "long-one"])
@pytest.mark.parametrize(
    ("finite", "hidden", "dtype", "count"),
    [
        (True, -inf, torch.float32, 1),
        (False, -inf, torch.float32, 0),
        (True, 0.0, torch.float32, 0),
        (True, 0.0, torch.float8_e4m3fn, 0),
    ],
    ids=["finite results", "infinite results", "nothing to hide", "no infinity"],
)
def test_larger_shapes_have_masked_rows_where_masks_leave_finite_results(name, finite, hidden, dtype, count):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        fill_inputs=lambda *_, **__: None,
        truth=lambda _: SimpleNamespace(is_finite=finite, has_nan=True),
        drawn=[{"x": torch.tensor([1.0, hidden]).to(dtype)}],
        call_and_grade=lambda _, **__: SimpleNamespace(near_miss=False),
        workload=SimpleNamespace(set="full", name="one"),
        inputs=SimpleNamespace(adversarial_distributions=ADVERSARIAL, has_square=False),
    )
    assert not {MASKED_ROWS, PADDED_ROWS}.intersection(check._adversarial(session))
    check._grade_distribution(session, MASKED)
    session.workload = SimpleNamespace(set="odd" if name != "one" else "full", name=name)
    drawn = [list(check._adversarial(session)) for _ in range(40)]
    counts = [names.count(name) for names in drawn for name in (MASKED_ROWS, PADDED_ROWS)]
    assert min(counts) == count
    assert max(counts) <= 1


@pytest.mark.parametrize(
    ("file", "masks"),
    [
        (file_of("int64", "float32", "float32"), set()),
        (file_of("int64", "float32", "int32"), set(MASKS)),
        (file_of("float32", "float32", "float32"), set(MASKS)),
        (file_of("float32", "float32", promises=("every number is finite",)), set()),
        (file_of("float32", "float32", promises=("every number of the cache is finite",)), set()),
        (file_of("float32", "float32", promises=("infinite ones count",)), set(MASKS)),
        (file_of("float32", "float32", promises=("each row has at least one finite element",)), set(MASKS)),
        (file_of("float32", "float32", promises=("at least one number is finite",)), set(MASKS)),
    ],
    ids=["hidden", "one source", "shown", "promised", "part promised", "not promised", "one", "least"],
)
def test_masks_are_left_out_where_a_nan_would_not_show_or_numbers_are_finite(file, masks):
    session = SimpleNamespace(
        workload=SimpleNamespace(set="odd", name="one"),
        inputs=SimpleNamespace(adversarial_distributions=ADVERSARIAL, has_square=False),
    )
    check = CorrectnessCheck(file, None, None, "cpu", lambda: 1)
    assert set(check._adversarial(session)).intersection(MASKS) == masks


@pytest.mark.parametrize(
    ("near", "calls"), [([False], 1), ([True, False], 2), ([True] * 9, gate_rules.DRAW_TRIES)]
)
def test_a_plain_call_that_nearly_passes_is_made_again_on_new_inputs(near, calls):
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    made, filled = [], []

    def call(_: str) -> SimpleNamespace:
        made.append(SimpleNamespace(near_miss=near[len(made)], status=Status.PASSED, number=len(made) + 1))
        return made[-1]

    session = SimpleNamespace(
        fill_inputs=lambda *, slots: filled.append(slots),
        call_and_grade=call,
        workload=SimpleNamespace(name="one"),
    )
    check._grade_call(session, "normal")
    assert (len(made), filled) == (calls, [1] * (calls - 1))
    assert [grade.number for grade in check.grades["one"]] == [calls]


def test_a_call_is_guessed_at_a_part_of_an_axis_that_callers_choose(monkeypatch):
    """A cache's `context` is not shorter than its `least`, so a shorter one has no lengths to draw."""
    file = load_definition(REPOSITORY / "kernels" / "mla_decode" / "definition.py")
    check = CorrectnessCheck(file, None, None, "cpu", lambda: 1)
    shortened = []
    session = SimpleNamespace(
        fill_inputs=lambda **_: None,
        grade_reference=lambda: None,
        time_one_call_cold=lambda _: SimpleNamespace(seconds=1.0, busy=None),
    )
    monkeypatch.setattr(check._costs, "_open_session", lambda workload: shortened.append(workload) or session)
    base = file.definition.workloads[0]
    guided = base.model_copy(update={"name": "guided-0", "axes": {**base.axes, "batch": 640}})
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1 << 50))
    assert check._costs.find_excess(guided, 1.0) == Excess("a call would take about 127 s", in_version=True)
    assert [each.axes for each in shortened] == [{**guided.axes, "batch": 640 // input_rules.CALL_PART}]


@pytest.mark.parametrize(
    ("excess", "names"),
    [
        (Excess("a call would take about 9 s", in_version=True), ["far-n"]),
        (Excess("its reference would take about 9 s"), []),
    ],
)
def test_a_version_too_slow_to_be_called_at_a_shape_has_a_check_that_did_not_run(
    workshop, monkeypatch, excess, names
):
    check = CorrectnessCheck(workshop.load("square", SQUARE), None, None, "cpu", lambda: 1)
    monkeypatch.setattr(check._costs, "find_excess", lambda *_: excess)
    notes: list[str] = []
    far = Workload(name="far-n", axes={"n": 1 << 20}, set="odd")
    assert check.check_larger(far, notes) is False
    assert notes == [f"far-n skipped: {excess.reason}"]
    uncalled = [each for each in check.end() if each.name == "long calls"]
    assert [each.ran for each in uncalled] == [False] * len(names)
    assert [each.how.rpartition(" ")[2] for each in uncalled] == names


def test_another_layout_gets_one_of_the_distributions():
    check = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1)
    session = SimpleNamespace(
        workload=SimpleNamespace(set="odd", name="one"),
        inputs=SimpleNamespace(adversarial_distributions=ADVERSARIAL, has_square=False),
    )
    drawn = [tuple(check._adversarial(session, most=1)) for _ in range(60)]
    assert {len(each) for each in drawn} == {1}
    assert len(set(drawn)) > 15
    interpreted = CorrectnessCheck(FLOATS, None, None, "cpu", lambda: 1, True)
    assert tuple(interpreted._adversarial(session, most=1)) == ()


@pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")
def test_bits_of_unusual_values_that_differ_from_call_to_call(seat, workshop, monkeypatch):
    monkeypatch.setattr(input_rules, "OTHER_VALUES_SHARE", 1)
    text = SQUARE.replace('name="square"', 'name="square", deterministic=True')
    body = """static int call = 0; ++call;
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * (call % 2 && std::fabs(x[i]) > 50 ? 1 + 1.2e-7f : 1);"""
    found = seat(workshop.load("square", text), kernel(body))
    check = CorrectnessCheck(found.file, found.arenas, found.side, "cpu", found.seed)
    session = found.session(found.file.definition.workloads[0])

    def call_until_they_come() -> None:
        for _ in range(60):
            check._check_repeat_on_others(session, Extremes())

    with pytest.raises(SideFailed) as caught:
        call_until_they_come()
    assert caught.value.status is Status.NOT_REPRODUCIBLE
