"""Rows of a call: which operators compute row by row, and what a sample of rows finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lab_samples import HEAD, SQUARE

from warpsmith.core.definition import TensorSpec
from warpsmith.lab.grading import rows
from warpsmith.lab.operator.definition_file import load_definition

ROOT = Path(__file__).parents[3]
MEAN = (
    HEAD
    + """
definition = Definition(
    name="centred", description="y = x less the mean of its column",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols", workloads=(Workload(name="w", axes={"rows": 8, "cols": 16}),),
)
def reference(x):
    return x - x.mean(0)
"""
)


@pytest.mark.parametrize(
    ("op", "axis"),
    [
        ("softmax", "rows"),
        ("rmsnorm", "rows"),
        ("rmsnorm_quant_fp8_token", "tokens"),
        ("sample_top_k_top_p", "rows"),
        ("rmsnorm_backward", None),  # the weight's gradient is a sum over rows
        ("moe_route", None),  # its plan is about all tokens
    ],
)
def test_which_operators_have_rows(op, axis):
    assert rows.find_row_axis(load_definition(ROOT / "kernels" / op / "definition.py")) == axis


def test_a_column_that_depends_on_its_mean_is_no_row(workshop):
    assert rows.find_row_axis(workshop.load("centred", MEAN)) == "cols"
    whole = MEAN.replace("x.mean(0)", "x.mean()")
    assert rows.find_row_axis(workshop.load("centred", whole)) is None


def test_rows_are_tried_at_a_small_size_and_once(workshop):
    file = workshop.load("centred", MEAN.replace('"rows": 8, "cols": 16', '"rows": 8192, "cols": 131072'))
    sizes = []

    def noted(x):
        sizes.append(x.numel())
        return x - x.mean(-1, keepdim=True)

    file = replace(file, reference=noted, row_axes={})
    assert rows.find_row_axis(file) == "rows"
    assert max(sizes) < 100
    count = len(sizes)
    assert rows.find_row_axis(file) == "rows"
    assert len(sizes) == count


def test_an_axis_that_a_promise_names_stays_as_declared(workshop):
    bound = MEAN.replace('flops="rows * cols"', 'flops="rows * cols", constraints=("cols is a multiple of 4096",)')
    file = workshop.load("centred", bound.replace('"cols": 16', '"cols": 16384'))
    widths = set()

    def noted(x):
        widths.add(x.shape[1])
        return x - x.mean(-1, keepdim=True)

    assert rows.find_row_axis(replace(file, reference=noted, row_axes={})) == "rows"
    assert widths == {16384}


def test_hooks_of_the_bound_must_be_row_by_row_too(workshop):
    file = workshop.load("centred", MEAN.replace("x.mean(0)", "x.mean(-1, keepdim=True)"))
    assert rows.find_part_axis(file) == "rows"
    whole = replace(file, magnitude=lambda x: x.abs().clamp_min(x.abs().mean()))
    assert rows.find_part_axis(whole) is None
    assert rows.find_row_axis(whole) == "rows"


def test_a_vector_of_elements_has_rows(workshop):
    assert rows.find_row_axis(workshop.load("square", SQUARE)) == "n"


def test_a_sample_has_both_ends():
    chosen = rows.sample_rows(10_000, 10_000 << 20)
    assert (chosen[0], chosen[-1]) == (0, 9_999)
    assert chosen == sorted(set(chosen))
    assert 60 < len(chosen) <= 66
    assert rows.sample_rows(3, 3 << 20) == [0, 1, 2]
    assert 4000 < len(rows.sample_rows(10_000, 10_000 << 10)) <= 4098  # short rows cost little


def test_places_are_different_and_have_both_ends():
    for size, count in ((1, 1), (2, 2), (9, 5), (9, 1)):
        places = rows.choose_places(size, count)
        assert len(set(places)) == count
        assert set(places) <= set(range(size))
        assert count < 2 or {0, size - 1} <= set(places)


def test_rows_are_placed_where_they_are_asked_for(workshop):
    specs = workshop.load("centred", MEAN).definition.tensor_inputs
    source, batch = {"x": torch.arange(12.0).view(4, 3)}, {"x": torch.zeros(2, 3)}
    placed = rows.place_rows(batch, source, specs, "rows", [3, 1], [0, 1])
    assert placed["x"].tolist() == [[9, 10, 11], [3, 4, 5]]
    assert batch["x"].sum() == 0
    weight = {"w": TensorSpec(shape=("cols",))}
    other = rows.place_rows({"w": torch.zeros(1)}, {"w": torch.ones(1)}, weight, "rows", [0], [0])
    assert other["w"].item() == 1
