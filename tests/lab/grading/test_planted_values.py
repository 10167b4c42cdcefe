"""Inputs that hold numbers of the version's source."""

from __future__ import annotations

import random

import pytest
import torch
from lab_samples import HEAD, SQUARE

from warpsmith.lab.grading import correctness, planted_values
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.inputs import Inputs

ROWS = SQUARE.replace('shape=("n",)', 'shape=("n", 64)')


def plant(file, numbers, seed=1):
    workload = file.definition.workloads[0]
    inputs = Inputs(file, workload, seed, "cpu")
    drawn, names = inputs.draw(), planted_values.plantable_inputs(file, workload, inputs)
    return drawn, planted_values.plant_numbers(drawn, numbers, names, inputs, random.Random(seed))


def test_a_number_its_neighbours_and_its_negative_at_random_places(workshop):
    file = workshop.load("square", ROWS)
    number, places = torch.tensor(77.25), set()
    for seed in range(20):
        drawn, planted = plant(file, [77.25], seed)
        up, down = (number.nextafter(torch.tensor(end)) for end in (float("inf"), 0.0))
        assert all(bool((planted["x"] == value).any()) for value in (number, -number))
        assert bool((planted["x"] > up).any())
        assert bool(((planted["x"] < number) & (planted["x"] >= 2 * down - number)).any())
        changed = (planted["x"] != drawn["x"]).sum(-1)
        assert changed.sum() > 0
        places.add(int(changed.max()) > 1)
    assert places == {True, False}  # one a row, or many


def test_numbers_beyond_the_type_are_left_out(workshop):
    file = workshop.load("square", ROWS)
    for seed in range(5):
        drawn, planted = plant(file, [1e38], seed)
        assert not torch.equal(drawn["x"], planted["x"])  # its root is among them
        assert planted["x"].abs().max() < 1e20


@pytest.mark.parametrize(
    ("distribution", "low", "high"), [("integers:3:50", 3, 50), ("integers:-20:9", -20, 9), ("zipf:40", 0, 40)]
)
def test_integers_stay_in_their_range(workshop, distribution, low, high):
    text = ROWS.replace(
        '"x": TensorSpec(',
        f'"k": TensorSpec(shape=("n",), dtype="int64", distribution="{distribution}"), "x": TensorSpec(',
        1,
    )
    file = workshop.load("square", text.replace("def reference(x", "def reference(k, x"))
    seen = set()
    for seed in range(10):
        drawn, planted = plant(file, [7, 39, 1000, 0.5], seed)
        assert low <= int(planted["k"].min())
        assert int(planted["k"].max()) < high
        seen |= set(planted["k"][planted["k"] != drawn["k"]].tolist())
    assert seen <= {sign * (number + step) for number in (7, 39) for step in (-1, 0, 1) for sign in (1, -1)}
    assert seen


def test_inputs_that_fit_together_or_have_their_own_values_hold_no_numbers(workshop):
    text = ROWS.replace('shape=("n", 64)', 'shape=("n", 64), distribution="uniform"', 1)
    file = workshop.load("square", text)
    inputs = Inputs(file, file.definition.workloads[0], 1, "cpu")
    assert planted_values.plantable_inputs(file, file.definition.workloads[0], inputs) == []


SCALED = (
    SQUARE.replace("inputs={", 'inputs={"scale": ScalarSpec(value=VALUE), ')
    .replace("import Definition,", "import Definition, ScalarSpec,")
    .replace("def reference(x", "def reference(scale, x")
)


@pytest.mark.parametrize(
    ("value", "taken", "refused"),
    [
        ("2.0", {40.0, 1000.0}, {-40.0}),
        ("1e-3", {0.25}, {40.0}),
        ("2.0, between=(0.5, 50.0)", {40.0}, {1000.0}),
        ("-2.0", {-40.0}, {40.0}),
        ("True, type='bool'", set(), {0.25, 40.0}),
    ],
)
def test_numbers_of_the_call_where_the_description_admits_them(workshop, value, taken, refused):
    file = workshop.load("square", SCALED.replace("VALUE", value))
    drawn = {number for _, number in planted_values.near_scalars(file, {0.25, 40.0, 1000.0}, random.Random(1))}
    assert taken <= drawn
    assert not refused & drawn
    for number in taken:
        step = number * input_rules.SCALAR_STEP
        assert {number - step, number + step} & drawn


RANGED = SCALED.replace('TensorSpec(shape=("n",))', 'TensorSpec(shape=("n",), distribution="RANGE")', 1)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (SCALED, "0.75", {0.75, -0.75}),
        (RANGED.replace("RANGE", "uniform:0:1"), "0.75", {0.75}),
        (RANGED.replace("RANGE", "uniform:0:1"), "1.5", set()),
        (RANGED.replace("RANGE", "sorted"), "0.75", set()),
        (SCALED, "3, type='int'", set()),
    ],
)
def test_elements_equal_to_a_number_of_the_call_in_their_range(workshop, text, value, expected):
    file = workshop.load("square", text.replace("VALUE", value))
    workload = file.definition.workloads[0]
    inputs = Inputs(file, workload, 1, "cpu")
    drawn = inputs.draw()
    planted = planted_values.plant_scalars(file, workload, drawn, inputs, random.Random(1))
    assert set(planted) == ({"x"} if expected else set())
    changed = planted["x"][planted["x"] != drawn["x"]] if planted else torch.zeros(0)
    assert set(changed.tolist()) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("0.3", "float32", float(torch.tensor(0.3))),
        ("0.3", "float64", float(torch.tensor(0.3))),  # a kernel may take it in float32
        ("0.3", "bfloat16", float(torch.tensor(0.3).bfloat16())),
        ("0.3, between=(0.3, 0.30001)", "bfloat16", None),
        ("1e-30", "float16", None),  # it would become 0
        ("0.0", "float16", 0.0),
        ("3, type='int'", "float32", None),
    ],
)
def test_numbers_are_rounded_to_what_inputs_hold(workshop, value, dtype, expected):
    file = workshop.load("square", SCALED.replace("VALUE", value))
    workload = file.definition.workloads[0].model_copy(update={"dtype": dtype})
    rounded = planted_values.round_scalars(file, workload)
    assert rounded == ({} if expected is None else {"scale": expected})


SCORES = (
    HEAD
    + """
definition = Definition(
    name="square", description="values weighed by scores", axes={"n": "rows", "cols": "columns"},
    inputs={name: TensorSpec(shape=("n", "cols")) for name in "kv"} | {"q": TensorSpec(shape=("cols",))},
    outputs={"y": TensorSpec(shape=("cols",))}, flops="n * cols", tolerance=Tolerance(reduction="cols"),
    workloads=(Workload(name="w", axes={"n": 5, "cols": 4}),),
)
def reference(k, v, q):
    return torch.softmax(k @ q, 0) @ v
"""
)


def scores(workshop, smallest):
    """A call whose two largest scores, 2^30 and a smaller term, differ by that term alone."""
    file = workshop.load("square", SCORES)
    workload = file.definition.workloads[0]
    k, v = torch.zeros(5, 4), torch.arange(20.0).view(5, 4)
    k[1] = torch.tensor([2.0**30, 0, 0, 0])
    k[3] = torch.tensor([2.0**30, smallest, 0, 0])
    inputs = {"k": k, "v": v, "q": torch.ones(4)}
    return file, workload, inputs, correctness.compute_truth(file, workload, inputs, correlated=True)


@pytest.mark.parametrize(("smallest", "decides"), [(128.0, False), (2.0**20, True)])
def test_the_other_of_two_near_scores_decides_nothing(workshop, smallest, decides):
    call = scores(workshop, smallest)
    assert correctness.grade_reference(*call).status == "PASSED"
    other = {"y": call[2]["v"][1]}
    assert correctness.grade_outputs(call[3], other).status == "INCORRECT_NUMERICAL"
    assert planted_values.decides(*call, other, 5) == decides


def test_what_no_noise_reaches_decides(workshop):
    call = scores(workshop, 128.0)
    wrong = {"y": torch.tensor([12.0, 13.0, torch.nan, 15.0])}
    assert planted_values.decides(*call, wrong, 5)
    assert planted_values.decides(*call, {"y": call[2]["v"][3] + 300}, 5)


def test_sums_decide_whose_noise_is_beyond_their_bound(workshop):
    text = ROWS.replace('"y": TensorSpec(shape=("n", 64))', '"y": TensorSpec(shape=("n",))')
    file = workshop.load("square", text.replace("x * x", "x.sum(-1)"))
    workload = file.definition.workloads[0]
    inputs = Inputs(file, workload, 3, "cpu").draw()
    truth = correctness.compute_truth(file, workload, inputs, correlated=True)
    wrong = truth.values["y"].float()
    wrong[7] += 1
    assert planted_values.decides(file, workload, inputs, truth, {"y": wrong}, 5)
    assert planted_values.decides(file, workload, inputs, truth, {"y": truth.values["y"].float()}, 5)
