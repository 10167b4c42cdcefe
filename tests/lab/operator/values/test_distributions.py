"""Distributions of related values, and of values near the ends of a type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.definition import Workload
from warpsmith.lab.grading.correctness import Truth, compute_truth
from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.operator.values.distributions import (
    ALONE,
    RELATED_INPUTS,
    REPEATED,
    shape_values,
    vary_nan_bits,
)

REDTEAM = Path(__file__).parents[3] / "redteam"


def drawn(shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return shape_values(REPEATED, torch.randn(shape, generator=generator), "float32", generator)


def test_one_place_of_a_row_is_hot_or_the_ends_of_its_blocks(workshop):
    file = workshop.load("square", SQUARE.replace('shape=("n",)', 'shape=("n", 64)'))
    hot = Inputs(file, file.definition.workloads[0], 1, "cpu").draw("one_hot")["x"] != 0
    single = hot.sum(-1) == 1
    assert 0.2 < single.double().mean() < 0.8
    ends = hot[~single].int()
    assert (ends == ends[:1]).all(), "ends of blocks are those of all rows"
    assert 1 < ends[0].sum() <= 64
    assert ends[0].nonzero().flatten().diff().unique().numel() == 1


def test_slices_are_alike_but_for_an_element_that_rules_their_sum():
    alone = 0
    for seed in range(40):
        values = drawn((6, 50), seed)
        first = (values == values[:1]).sum(
            1
        ) >= 48  # of each row two elements may differ: its own, and the first's
        other = (values == values[:, :1]).sum(0) >= 4
        assert first.all() or other.all()
        largest = values.abs().amax(1)
        alone += bool((largest.unique().numel() > 4) and first.all())
    assert 12 < alone < 35


@pytest.mark.parametrize("shape", [(9,), (1, 9), (9, 1), (1, 1), (2, 3, 4)])
def test_any_shape_may_be_repeated(shape):
    for seed in range(10):
        assert drawn(shape, seed).shape == shape


@pytest.fixture
def distance():
    return load_definition(REDTEAM / "distance" / "definition.py")


def test_inputs_of_one_shape_are_equal_nearly_so_a_multiple_or_a_permutation(distance):
    source = Inputs(distance, distance.definition.workloads[1], 3, "cpu")
    assert RELATED_INPUTS in source.adversarial_distributions
    kinds = set()
    for tensors in (source.draw(RELATED_INPUTS) for _ in range(60)):
        a, b = tensors["a"], tensors["b"]
        share = round(float((a == b).double().mean()), 1)
        if share > 0.5:
            kinds.add(share)
        elif torch.equal(a.flatten().sort().values, b.flatten().sort().values):
            kinds.add("permutation")
        else:
            ratio = float(a[0, 0] / b[0, 0])
            kinds.add(ratio)
            assert torch.equal(a, b * ratio)
    assert kinds <= {0.9, 1.0, "permutation", -1.0, 2.0, 0.5}
    assert {1.0, "permutation", -1.0} <= kinds
    assert not torch.equal(*source.draw().values())


EDGES = """
import torch
from warpsmith.core.definition import Definition, TensorSpec, Workload
definition = Definition(
    name="edges", description="y = x with some", axes={"n": "values", "edges": "edges"},
    inputs={
        "x": TensorSpec(shape=("n",)), "edge": TensorSpec(shape=("edges",), distribution="uniform:-3:3"),
        "id": TensorSpec(shape=("n",), dtype="int64", distribution="integers:5:100"),
        "key": TensorSpec(shape=("edges",), dtype="int64", distribution="integers:0:50"),
        "end": TensorSpec(shape=("edges",), dtype="int64", distribution="offsets:n"),
    },
    outputs={"y": TensorSpec(shape=("n",))}, flops="n", constraints=("key is known",),
    workloads=(Workload(name="w", axes={"n": 300, "edges": 7}), Workload(name="v", axes={"n": 30, "edges": 7})),
)
def reference(x, edge, id, key, end):
    return x
"""


def test_inputs_of_other_shapes_hold_each_others_values_within_their_range(tmp_path):
    path = tmp_path / "edges" / "definition.py"
    path.parent.mkdir()
    path.write_text(EDGES)
    file = load_definition(path)
    source, shared, forms = Inputs(file, file.definition.workloads[0], 3, "cpu"), 0, set()
    for tensors in (source.draw(RELATED_INPUTS) for _ in range(20)):
        forms.add(
            (
                bool(torch.isin(tensors["x"], tensors["edge"]).all()),
                bool(torch.isin(tensors["edge"], tensors["x"]).any()),
            )
        )
        assert tensors["edge"].abs().max() <= 3
        assert tensors["end"][0] == 0
        assert 5 <= tensors["id"].min() <= tensors["id"].max() < 100
        shared += int(torch.isin(tensors["id"], tensors["key"]).sum() > 150)
        assert tensors["key"].max() < 50
    assert shared > 5
    assert {(True, True), (False, True)} <= forms, "each takes values of the other"
    assert not torch.isin(source.draw()["x"], source.draw()["edge"]).any()


def test_one_input_alone_has_the_lowest_number(distance):
    source, seen = Inputs(distance, distance.definition.workloads[1], 3, "cpu"), set()
    for name in ALONE:
        for tensors in (source.draw(name) for _ in range(10)):
            (extreme,) = (key for key, value in tensors.items() if value.abs().max() > 1e30)
            seen.add(extreme)
    assert seen == {"a", "b"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "float64"])
def test_rows_of_the_lowest_number_are_finite(dtype):
    limits = torch.finfo(getattr(torch, dtype))
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        drawn_type = torch.float64 if dtype == "float64" else torch.float32
        normal = torch.randn((8, 30), generator=generator, dtype=drawn_type)
        lowest = shape_values("lowest", normal.clone(), dtype, generator).to(getattr(torch, dtype)).double()
        assert lowest.isfinite().all()
        rows = (lowest == limits.min).double().mean(1)
        assert rows.max() == 1
        assert lowest.unique().numel() > 1


def test_inputs_that_a_promise_names_are_never_equal(distance, tmp_path):
    text = distance.path.read_text().replace("flops=", 'constraints=("b is not a",), flops=')
    path = tmp_path / "distance" / "definition.py"
    path.parent.mkdir()
    path.write_text(text)
    promised = load_definition(path)
    source = Inputs(promised, promised.definition.workloads[1], 3, "cpu")
    assert RELATED_INPUTS not in source.adversarial_distributions


def test_results_that_leave_their_type_are_not_finite(distance):
    workload = distance.definition.workloads[1]
    tensors = Inputs(distance, workload, 3, "cpu").draw()
    assert compute_truth(distance, workload, tensors).is_finite
    tensors["a"][0, :2] = torch.finfo(torch.float32).max
    assert not compute_truth(distance, workload, tensors).is_finite  # it is finite in float64


def test_truths_are_finite_whatever_their_type():
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float64):
        assert Truth({"y": torch.ones(3).to(dtype)}, {"y": None}, {"y": 1.0}, {"y": 1.0}).is_finite
    infinite = {"y": torch.ones(3), "z": torch.tensor([float("inf")])}
    assert not Truth(infinite, dict.fromkeys(infinite), {}, {}).is_finite


def test_one_element_of_each_period_is_larger():
    generator, periods = torch.Generator().manual_seed(3), set()
    for _ in range(60):
        values = shape_values("periodic", torch.randn((30, 256), generator=generator), "float32", generator)
        assert values.shape == (30, 256)
        for row in values:
            places = (row.abs() > 16).nonzero().flatten()
            if 4 < len(places) < 100 and len(set(row[places].sign().tolist())) == 1:
                periods.add(int(places.diff().min()))
    assert {4, 8, 16, 32} <= periods, "powers of two"


def test_patterns_of_pairs_have_numbers_beside_zeros_or_masks():
    generator, near = torch.Generator().manual_seed(3), 0
    for name, beyond in (("patterned", 0.0), ("masked_pairs", float("-inf"))):
        exact = 0
        for _ in range(60):
            values = shape_values(name, torch.randn((2, 24, 24), generator=generator), "float32", generator)
            pairs = values != beyond
            assert bool(pairs.any(-1).all()), "each row has a pair"
            exact += values[pairs].unique().numel() == 1
            above = pairs[0].triu(1)
            near += 0 < int(above.sum()) < 9
        assert 5 < exact < 55
    assert near > 5, "a triangle has exceptions"


def test_masks_of_pairs_stand_in_one_input_most_often_the_smallest(workshop):
    text = SQUARE.replace(
        '"x": TensorSpec(shape=("n",))',
        '"x": TensorSpec(shape=(2, "n", "n")), "m": TensorSpec(shape=("n", "n"))',
        1,
    ).replace("(x)", "(x, m)")
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 20}), 3, "cpu")
    assert source.has_square
    masked = [
        [name for name, value in source.draw("masked_pairs").items() if bool(value.isinf().any())]
        for _ in range(60)
    ]
    assert max(map(len, masked)) == 1
    assert masked.count(["m"]) > masked.count(["x"]) > 4


def test_masks_of_pairs_do_not_stand_in_an_empty_input(workshop):
    text = SQUARE.replace(
        '"x": TensorSpec(shape=("n",))',
        '"x": TensorSpec(shape=("n", "n")), "m": TensorSpec(shape=(0, "n"))',
        1,
    ).replace("(x)", "(x, m)")
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 20}), 3, "cpu")
    assert all(bool(source.draw("masked_pairs")["x"].isinf().any()) for _ in range(20))


def test_squares_are_symmetric_or_shifted_but_for_a_few_elements():
    generator = torch.Generator().manual_seed(1)
    drawn = [
        shape_values("patterned", torch.randn(40, 40, generator=generator), "float32", generator)
        for _ in range(300)
    ]
    symmetric = [int((each != each.mT).sum()) for each in drawn if bool((each != 0).all())]
    shifted = [int((each[1:, 1:] != each[:-1, :-1]).sum()) for each in drawn if bool((each != 0).all())]
    for counts in (symmetric, shifted):
        assert counts.count(0) > 3
        assert sum(0 < count <= 12 for count in counts) > 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_bits_of_nan_vary_and_no_other_ones(dtype):
    generator = torch.Generator().manual_seed(1)
    values = shape_values("nonfinite", torch.randn(99, 33, generator=generator), dtype, generator)
    values = values.to(getattr(torch, dtype))
    varied = vary_nan_bits("nonfinite", values, generator)
    is_nan = computable(values).isnan()
    assert torch.equal(computable(varied).isnan(), is_nan)
    assert torch.equal(computable(varied)[~is_nan], computable(values)[~is_nan])
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[varied.itemsize]
    assert varied.view(whole)[is_nan].unique().numel() == (2 if dtype == "float8_e4m3fn" else 4)
    assert vary_nan_bits("normal", values, generator) is values


def test_rows_hold_several_numbers_that_are_not_finite():
    generator = torch.Generator().manual_seed(1)
    values = shape_values("nonfinite", torch.randn(500, 33, generator=generator), "float32", generator)
    kinds = torch.stack([values.isnan(), values.isposinf(), values.isneginf()])
    present = {tuple(row) for row in kinds.sum(-1).T.tolist()}
    assert {(0, 0, 0), (2, 0, 0), (1, 1, 0), (0, 1, 1), (1, 1, 1)} <= present


def test_lowered_values_are_below_zero_by_several_amounts():
    generator = torch.Generator().manual_seed(0)
    draws = [shape_values("lowered", torch.randn(64), "float32", generator).mean() for _ in range(60)]
    counts = Counter(round(-float(mean) / 25) for mean in draws)
    assert set(counts) == {1, 2, 4, 8}
    assert counts[8] > 15
