from __future__ import annotations

import pytest
from lab_samples import HEAD, SQUARE

from warpsmith.lab.grading import odd

MATRIX = (
    HEAD
    + """
definition = Definition(
    name="pairs", description="y = x + its other half",
    axes={"rows": "rows", "cols": "columns", "heads": 2},
    inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=tuple(Workload(name=f"w{i}", axes={"rows": 1 << i, "cols": 4096}) for i in range(6, 17, 2))
    + (Workload(name="other", axes={"rows": 3, "cols": 5}, set="full"),),
)
def reference(x):
    return x + x.amax()
"""
)


def axes(found):
    return {workload.name: workload.axes for workload in found}


def test_derived_shapes(workshop):
    found = odd.derive_odd_workloads(workshop.load("square", SQUARE))
    assert axes(found) == {
        "odd-ones": {"n": 1},
        "odd-primes": {"n": 67},
        "odd-uneven": {"n": 129},
        "odd-empty-n": {"n": 0},
    }
    assert {workload.set for workload in found} == {"odd"}


def test_further_dtypes_get_one_element_and_none(workshop):
    text = SQUARE.replace('axes={"n": 5000}', 'axes={"n": 5000}, dtype="bfloat16"')
    derived = {w.name: (w.dtype, w.axes["n"]) for w in odd.derive_odd_workloads(workshop.load("square", text))}
    assert derived["odd-ones-bfloat16"] == ("bfloat16", 1)
    assert derived["odd-empty-n-bfloat16"] == ("bfloat16", 0)
    assert {dtype for dtype, _ in derived.values()} == {"float32", "bfloat16"}


def test_nothing_to_compute_only_where_the_reference_can(workshop):
    names = axes(odd.derive_odd_workloads(workshop.load("pairs", MATRIX)))
    assert not any(name.startswith("odd-empty") for name in names)  # no largest of no elements
    able = workshop.load("pairs", MATRIX.replace("x.amax()", "x.sum()"))
    derived = axes(odd.derive_odd_workloads(able))
    assert derived["odd-empty-rows"] == {"rows": 0, "cols": 67}
    assert derived["odd-empty-cols"] == {"rows": 67, "cols": 0}


@pytest.mark.parametrize(("result", "is_drawn"), [("x.sum(1)", True), ("x.mean(1)", False), ("x.amax(1)", False)])
def test_sums_of_nothing_are_asked_where_they_are_finite(workshop, result, is_drawn):
    text = MATRIX.replace('"y": TensorSpec(shape=("rows", "cols"))', '"y": TensorSpec(shape=("rows",))')
    file = workshop.load("pairs", text.replace("x + x.amax()", result))
    assert ("odd-empty-cols" in axes(odd.derive_odd_workloads(file))) == is_drawn


def test_near_misses_of_the_declared_shapes(workshop):
    file = workshop.load("square", SQUARE)
    for seed in range(30):
        found = axes(odd.draw_near_workloads(file, seed=seed))
        assert set(found) == {"near-small", "near-large"}
        for name, size in (("near-small", 1000), ("near-large", 5000)):
            assert 0 < abs(found[name]["n"] - size) <= 7
            assert found[name]["n"] % 8
    assert {workload.set for workload in odd.draw_near_workloads(file)} == {"odd"}
    drawn = [axes(odd.draw_near_workloads(file)) for _ in range(6)]
    assert any(one != drawn[0] for one in drawn)


def test_large_ones_are_scaled_down_and_four_are_enough(workshop):
    file = workshop.load("pairs", MATRIX)
    found = odd.draw_near_workloads(file, seed=1)
    assert len(found) == 4
    for workload in found:
        assert workload.name != "near-other"
        assert workload.axes["rows"] * workload.axes["cols"] * 2 < 1.2 * 2**20
    assert axes(odd.draw_near_workloads(file, "full", seed=1)).keys() == {"near-other"}


def test_an_interpreter_gets_one_small_one(workshop):
    (found,) = odd.draw_near_workloads(workshop.load("pairs", MATRIX), interpreted=True, seed=1)
    assert found.axes["rows"] * found.axes["cols"] * 2 < 1.2 * 2**14


@pytest.mark.parametrize(
    "change",
    [
        ('flops="n",', 'flops="n", constraints=("n is even",),'),
        ("def reference", "def inputs(workload, generator, device): ...\ndef reference"),
        ('axes={"n": "length"}', 'axes={"n": 1000}'),
    ],
)
def test_none_where_callers_are_bound(workshop, change):
    text = SQUARE.replace(*change).replace(', Workload(name="large", axes={"n": 5000})', ",")
    file = workshop.load("square", text)
    assert odd.derive_odd_workloads(file) == []
    assert odd.draw_near_workloads(file) == []


def test_shapes_that_the_reference_cannot_do_are_left_out(workshop):
    text = SQUARE.replace("return x * x", "return x.view(-1, 4).square().flatten()")
    file = workshop.load("square", text)
    sizes = [axes(odd.draw_near_workloads(file, seed=seed)) for seed in range(20)]
    assert any(found for found in sizes)
    assert all(found["n"] % 4 == 0 for one in sizes for found in one.values())
