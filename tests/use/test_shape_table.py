"""Between judged shapes: where all around agree their version runs, else the best single one."""

from __future__ import annotations

import pytest
from map_samples import cell, make_map, plane

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.use.shape_table import ShapeTable

SHAPES = plane((8, 32), (64, 32), (8, 128), (64, 128), (64, 512), (1024, 32), (1024, 128))
FAST = {"8x32": True, "64x32": True, "8x128": True, "64x128": True}
KIND = ("float32",)


def definition(**changes):
    specs = {"x": TensorSpec(shape=("rows", "groups"))}
    return Definition(
        name="affine", description="y = x", flops="rows", workloads=tuple(SHAPES),
        **{"axes": {"rows": "r", "groups": "g"}, "inputs": specs, "outputs": {"y": specs["x"]}, **changes},
    )  # fmt: skip


@pytest.fixture
def table():
    return ShapeTable(make_map(SHAPES, FAST), definition(), ("rows", "groups"))


@pytest.mark.parametrize(
    ("rows", "groups", "runs"),
    [
        (8, 32, "toy/v2"),  # judged
        (64, 512, "toy/v1"),
        (20, 64, "toy/v2"),  # in a box whose corners agree
        (8, 64, "toy/v2"),  # on its edge
        (20, 33, "toy/v1"),  # not aligned as the corners are
        (21, 64, "toy/v2"),  # rows are no last dimension
        (4, 64, "toy/v1"),  # outside of all that was judged
        (64, 256, "toy/v1"),  # between two that disagree
        (200, 64, "toy/v1"),  # the box is too wide
        (20, 256, "toy/v1"),  # a corner was not judged
    ],
)
def test_the_version_of_a_shape(table, rows, groups, runs):
    assert table.solution_at(KIND, {"rows": rows, "groups": groups}) == runs


def test_one_judged_shape_inside_that_disagrees_is_enough():
    shapes = [*SHAPES, *plane((16, 64))]
    table = ShapeTable(make_map(shapes, FAST), definition(), ("rows", "groups"))
    assert table.solution_at(KIND, {"rows": 20, "groups": 64}) == "toy/v1"
    assert table.solution_at(KIND, {"rows": 8, "groups": 64}) == "toy/v2"  # on an edge that it is not near


def test_another_type_is_another_table(table):
    assert table.solution_at(("bfloat16",), {"rows": 8, "groups": 32}) == "toy/v1"


def test_switches_and_integers_belong_to_a_shape():
    numbers = {"causal": ScalarSpec(type="bool", value=False), "eps": ScalarSpec(value=1e-6)}
    own = definition(inputs={"x": TensorSpec(shape=("rows", "groups")), **numbers})
    table = ShapeTable(make_map(SHAPES, FAST), own, ("rows", "groups"))
    assert table.solution_at(("float32", False), {"rows": 8, "groups": 32}) == "toy/v2"
    assert table.solution_at(("float32", True), {"rows": 8, "groups": 32}) == "toy/v1"


def test_two_workloads_of_a_shape_that_disagree_give_the_best_single_version():
    twin = Workload(name="8x32-zipf", axes={"rows": 8, "groups": 32}, distribution="zipf")
    record = make_map([*SHAPES, twin], FAST)
    for cells in (record.cells, record.cells[::-1]):
        table = ShapeTable(record.model_copy(update={"cells": cells}), definition(), ("rows", "groups"))
        assert table.solution_at(KIND, {"rows": 8, "groups": 32}) == "toy/v1"
        assert table.solution_at(KIND, {"rows": 20, "groups": 64}) == "toy/v1"


def test_an_axis_that_no_call_shows_leaves_the_best_single_version(table):
    hidden = ShapeTable(make_map(SHAPES, FAST), definition(), ("rows",))
    assert hidden.solution_at(KIND, {"rows": 8}) == "toy/v1"
    assert table.solution_at(KIND, {"rows": 8, "groups": 32}) == "toy/v2"


def test_a_judged_shape_never_runs_a_version_that_was_not_shown_faster_there(table):
    record = make_map(SHAPES, FAST)
    for judged in record.cells:
        assert table.solution_at(KIND, judged.workload.axes) == judged.solution
    assert cell(SHAPES[0], "a", "b", faster=False)["solution"] == "a"
