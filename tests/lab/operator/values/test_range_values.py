"""Values with structure in the declared range of an input."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import IN_RANGE
from warpsmith.lab.operator.values.range_values import arrange_rows

ROWS = SQUARE.replace('shape=("n",)', 'shape=("n", 40), distribution="RANGE"', 1).replace(
    'shape=("n",)', 'shape=("n", 40)'
)


def source(workshop, form="uniform:0:1", seed=1, dtype="float32"):
    file = workshop.load("square", ROWS.replace("RANGE", form))
    workload = file.definition.workloads[0].model_copy(update={"dtype": dtype, "axes": {"n": 64}})
    return Inputs(file, workload, seed, "cpu")


def forms_of(rows, limits):
    """Name the forms that rows have."""
    names = set()
    for row in rows:
        levels = row.unique()
        if len(levels) == 1:
            names.add({limits[0]: "least", limits[1]: "largest"}.get(float(row[0]), "flat"))
        elif len(levels) == 2:
            names |= {"both ends" if levels.tolist() == list(limits) else "two levels"}
        elif bool((row.diff() >= 0).all() or (row.diff() <= 0).all()):
            names.add("sorted")
        else:
            names.add("near" if (levels.max() - levels.min()) < 1e-5 else "drawn")
    return names


@pytest.mark.parametrize(("form", "has_zeros"), [("uniform:-1:1", True), ("uniform:0.5:1", False)])
def test_zeros_of_both_signs_lie_within_a_range(workshop, form, has_zeros):
    drawer = source(workshop, form)
    rows = torch.cat([drawer.draw(IN_RANGE)["x"] for _ in range(40)])
    zeros = rows == 0
    some = rows[zeros.any(-1) & ~zeros.all(-1)]
    assert bool(zeros.all(-1).any()) == has_zeros
    assert bool((some.signbit() & (some == 0)).any()) == has_zeros
    assert bool((~some.signbit() & (some == 0)).any()) == has_zeros


@pytest.mark.parametrize(
    ("text", "most"),
    [("from 0 to 1", 1), ("0 <= x <= 1.0", 1), ("up to 1, inclusive", 1), ("to 1.5 of it", 0), ("below 1", 0)],
)
def test_a_range_is_closed_where_words_say_so(workshop, text, most):
    file = workshop.load("square", ROWS.replace('"RANGE"', f'"uniform:0:1", description="{text}"'))
    limits = Inputs(file, file.definition.workloads[0], 1, "cpu").range_limits("x")
    assert (limits[1] == 1) == most


ALL = {"least", "largest", "flat", "both ends", "two levels", "sorted", "near", "drawn"}


def test_rows_have_every_form_within_the_range(workshop):
    drawer, seen = source(workshop), set()
    limits = drawer.range_limits("x")
    for _ in range(40):
        rows = drawer.draw(IN_RANGE)["x"]
        assert 0 <= rows.min() <= rows.max() < 1
        seen |= forms_of(rows, limits)
    assert seen == ALL


def test_in_some_draws_rows_differ_in_form_and_in_some_they_do_not(workshop):
    drawer = source(workshop)
    counts = {len(forms_of(drawer.draw(IN_RANGE)["x"], drawer.range_limits("x"))) for _ in range(60)}
    assert 1 in counts
    assert max(counts) > 4


def test_half_of_the_draws_hold_no_end(workshop):
    drawer, mixed = source(workshop), []
    for _ in range(120):
        rows = drawer.draw(IN_RANGE)["x"]
        if len(forms_of(rows, drawer.range_limits("x"))) > 3:
            mixed.append(bool((rows == 0).any()))
    assert len(mixed) / 4 < sum(mixed) < 3 * len(mixed) / 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "float8_e4m3fn"])
@pytest.mark.parametrize(("form", "low", "high"), [("uniform:-3:n / 16", -3, 4), ("uniform", 0, 1)])
def test_no_value_is_beyond_what_a_draw_may_give(workshop, dtype, form, low, high):
    drawer = source(workshop, form, dtype=dtype)
    least, most = drawer.range_limits("x")
    assert low <= least < most <= high
    for name in (None, *[IN_RANGE] * 20):
        rows = drawer.draw(name)["x"]
        assert rows.dtype == getattr(torch, dtype)
        assert rows.is_contiguous()
        assert least <= float(rows.double().min()) <= float(rows.double().max()) <= most


@pytest.mark.parametrize("shape", [(), (0,), (1,), (9,), (3, 0), (1, 9), (2, 3, 4)])
def test_any_shape_may_be_arranged(shape):
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        assert arrange_rows(torch.rand(shape), (0.0, 1.0), generator).shape == shape


def test_the_distribution_is_that_of_declared_ranges_alone(workshop):
    assert IN_RANGE in source(workshop).adversarial_distributions
    for form in ("workload", "normal:0:1", "masked"):
        assert IN_RANGE not in source(workshop, form).adversarial_distributions
        assert source(workshop, form).range_limits("x") is None
