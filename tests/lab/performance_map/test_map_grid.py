"""Shapes of a map: what is timed anyway, what a user names, and a grid that callers may pass."""

from __future__ import annotations

import pytest
from lab_samples import HEAD, SQUARE

from warpsmith.errors import Misuse
from warpsmith.lab.performance_map.grid import map_workloads

PLANE = (
    HEAD
    + """
definition = Definition(
    name="plane", description="y = x", axes={"rows": "rows", "cols": "columns"}, constraints=(),
    inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows", workloads=(Workload(name="wide", axes={"rows": 64, "cols": 4096}),
               Workload(name="tall", axes={"rows": 4096, "cols": 64}),
               Workload(name="tiny", axes={"rows": 3, "cols": 5}, set="odd")),
)
def reference(x):
    return x.clone()
"""
)


def test_timed_workloads_come_first_and_a_grid_follows_up_to_the_count(workshop):
    file = workshop.load("plane", PLANE)
    shapes = map_workloads(file, 14)
    assert [shape.name for shape in shapes[:2]] == ["wide", "tall"]
    assert 8 <= len(shapes) <= 14
    sizes = {(shape.axes["rows"], shape.axes["cols"]) for shape in shapes}
    assert len(sizes) == len(shapes)
    assert max(rows * cols for rows, cols in sizes) == 64 * 4096  # none is larger than what is judged
    assert min(rows for rows, _ in sizes) < 64
    assert {rows for rows, _ in sizes} >= {64, 4096}  # timed sizes are lines of the grid
    assert all(shape.dtype == "float32" for shape in shapes)


def test_a_named_size_is_one_of_the_shapes(workshop):
    file = workshop.load("plane", PLANE)
    shapes = map_workloads(file, 2, ["rows=100,cols=32"])
    assert [shape.name for shape in shapes] == ["wide", "tall", "rows=100,cols=32"]


def test_an_axis_that_a_promise_names_has_only_its_judged_sizes(workshop):
    file = workshop.load("plane", PLANE.replace("constraints=()", 'constraints=("cols counts heads",)'))
    assert {shape.axes["cols"] for shape in map_workloads(file, 10)} == {64, 4096}
    assert map_workloads(file, 3, ["rows=7,cols=64"])[2].axes == {"rows": 7, "cols": 64}
    with pytest.raises(Misuse, match="promises more of `cols` than its size; it may be 64, 4096"):
        map_workloads(file, 3, ["cols=65"])


def test_inputs_that_are_drawn_together_vary_along_their_own_axis_alone(workshop):
    drawn = (
        PLANE.replace("constraints=()", 'drawn_along="rows"') + "def inputs(sizes, generator):\n    return {}\n"
    )
    assert {shape.axes["cols"] for shape in map_workloads(workshop.load("plane", drawn), 10)} == {64, 4096}


def test_where_nothing_varies_there_is_no_map(workshop):
    text = SQUARE.replace(', Workload(name="large", axes={"n": 5000})', ",").replace(
        'flops="n",', 'flops="n", constraints=("n is as it is",),'
    )
    with pytest.raises(Misuse, match="no axis that may have another size"):
        map_workloads(workshop.load("square", text), 10)


def test_more_shapes_than_a_table_can_hold_are_refused(workshop):
    with pytest.raises(Misuse, match="66 shapes are more than a map's 64"):
        map_workloads(workshop.load("plane", PLANE), 4, [f"rows={size}" for size in range(1, 65)])


def test_a_type_that_nothing_is_judged_at_is_refused(workshop):
    with pytest.raises(Misuse, match="not judged at `bfloat16`"):
        map_workloads(workshop.load("plane", PLANE), 4, ["rows=9:bfloat16"])
