"""Axes that callers may give other sizes: by promises in words, and by trying a definition's own inputs."""

from __future__ import annotations

import collections

import pytest
from lab_samples import HEAD

from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import free_axes, guided_shapes, kept_shapes, odd, shapes

MATRIX = (
    HEAD
    + """
definition = Definition(
    name="pairs", description="y = x * bias",
    axes={"rows": "rows", "cols": "columns", "heads": 2},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "bias": ScalarSpec(value=0.5)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=tuple(Workload(name=f"w{rows}", axes={"rows": rows, "cols": 96}) for rows in (64, 32)),
)
def reference(x, bias):
    return x * bias
"""
)

OWN = """

def inputs(workload, generator, device):
    rows, cols = (workload.axes[name] for name in ("rows", "cols"))
    SETUP
    return {"x": torch.randn(rows, cols, generator=generator, device=device)}
"""


@pytest.mark.parametrize(
    ("promise", "free"),
    [
        ("x is finite", ["rows", "cols"]),
        ("ids are below rows", ["cols"]),
        ("0 <= x[r, c] < rows + cols", ["rows", "cols"]),
        ("x has a multiple of 8 rows", ["cols"]),
        ("x has an even size", []),
        ("sizes are as given", []),
        ("the vocabulary is a multiple of 8", []),
        ("columns are even", ["rows"]),
        ("a multiple of 2 columns", ["rows"]),
        ("columns are even, and so is the length of a row", []),
        ("cols >= 8, rows <= 4 * cols", ["rows", "cols"]),
        ("cols % 8 == 0, cols >= rows", ["rows", "cols"]),
        ("rows % 8 == 0 as a rule", ["cols"]),
    ],
)
def test_a_promise_binds_the_axes_that_it_names_or_describes(workshop, promise, free):
    text = MATRIX.replace("workloads=", f"constraints=({promise!r},), workloads=")
    assert free_axes.variable_axes(workshop.load("pairs", text)) == free


@pytest.mark.parametrize(
    "promise", ["9 <= cols <= 4 * rows", "rows % 32 == 0, cols % 32 == 0", "cols == rows + 32"]
)
def test_shapes_hold_what_a_promise_compares(workshop, promise):
    text = MATRIX.replace("workloads=", f"constraints=({promise!r},), workloads=").replace("96}", "rows + 32}")
    file = workshop.load("pairs", text)
    workloads = shapes.draw_judged_workloads(file, file.definition.workloads, interpreted=False, device="cpu")
    drawn = [workload for part in workloads for workload in part]
    assert len(drawn) > 10
    assert all(map(file.definition.has_shapes, drawn))
    assert len({each.axes["cols"] for each in drawn}) > 5


@pytest.mark.parametrize(
    "promise", ["cols <= 4 * rows + 8", "cols % 32 == 0", "rows <= cols", "cols % heads == 0"]
)
@pytest.mark.parametrize("own", ["", OWN.replace("SETUP", "")])
def test_as_many_shapes_are_drawn_beside_what_a_promise_compares(workshop, promise, own):
    text = MATRIX.replace("workloads=", f"constraints=({promise!r},), workloads=") + own
    drawn = draw_all(workshop.load("pairs", text))
    assert count_classes(drawn) == count_classes(draw_all(workshop.load("pairs", MATRIX + own)))
    assert any(size % 2 for each in drawn for size in each.axes.values()), "what no promise binds is odd"


def draw_all(file):
    """Draw the shapes of a judgement, but far ones: two axes that are bound may be too many elements there."""
    judged = file.definition.workloads
    larger = shapes.draw_larger_workload(file, judged, 1 << 30, seed=1)
    return [
        *odd.draw_near_workloads(file, seed=1),
        *shapes.draw_class_workloads(file, judged, seed=1),
        *kept_shapes.draw_kept_workloads(file, judged, seed=1),
        *guided_shapes.draw_guided_workloads(file, judged, [], {100, 5000}, seed=1),
        *([larger] if larger else []),
    ]


def count_classes(drawn):
    return collections.Counter("-".join(shape.name.split("-")[:2]) for shape in drawn)


def test_a_far_shape_holds_a_promise_where_a_call_has_room(workshop):
    text = MATRIX.replace("workloads=", 'constraints=("cols % 8 == 0, rows <= 4 * cols",), workloads=')
    file = workshop.load("pairs", text)
    drawn = shapes.draw_far_workloads(file, file.definition.workloads)
    assert {each.name.split("-")[1] for each in drawn} == {"cols"}
    assert all(map(file.definition.has_shapes, drawn))


def test_a_declared_workload_holds_what_a_promise_compares(workshop):
    text = MATRIX.replace("workloads=", 'constraints=("cols > 100000",), workloads=')
    with pytest.raises(BadDefinition, match="the promise `cols > 100000` does not hold"):
        workshop.load("pairs", text)


def test_a_promise_about_an_input_called_lengths_binds_no_axis(workshop):
    lengths = 'TensorSpec(shape=("rows",), dtype="int32", distribution="integers:1:cols + 1")'
    text = MATRIX.replace('"bias": ScalarSpec(value=0.5)', f'"lengths": {lengths}').replace(
        "bias", "lengths[:, None]"
    )
    text = text.replace("def reference(x, lengths[:, None])", "def reference(x, lengths)")
    text = text.replace("workloads=", 'constraints=("1 <= lengths <= cols",), workloads=')
    file = workshop.load("pairs", text)
    assert free_axes.variable_axes(file) == ["rows", "cols"]
    assert any(
        workload.axes["cols"] > 96 for workload in shapes.draw_class_workloads(file, file.definition.workloads)
    )


@pytest.mark.parametrize(
    ("promise", "axes"),
    [
        ("lengths ascend; a group may have zero length", ["rows", "cols"]),
        ("lengths are those of the rows, which have the same length", ["rows", "cols"]),
        ("lengths have the length of a row", []),
        ("a group may have zero length", []),
    ],
)
def test_how_much_of_an_input_something_takes_is_no_size(workshop, promise, axes):
    lengths = 'TensorSpec(shape=("rows",), dtype="int32", distribution="offsets:cols")'
    text = MATRIX.replace('"bias": ScalarSpec(value=0.5)', f'"lengths": {lengths}')
    text = text.replace("def reference(x, bias)", "def reference(x, lengths)").replace("bias", "lengths[:, None]")
    text = text.replace("workloads=", f'constraints=("{promise}",), workloads=')
    assert free_axes.variable_axes(workshop.load("pairs", text)) == axes


def load_own(workshop, setup, along=""):
    text = MATRIX.replace("workloads=", f'drawn_along="{along}", workloads=') if along else MATRIX
    return workshop.load("pairs", text + OWN.replace("SETUP", setup))


@pytest.mark.parametrize(
    ("setup", "free"),
    [
        ("rows = rows if rows in (32, 64) else 7", ["cols"]),
        ("", ["rows", "cols"]),
        ("assert rows < 70", ["rows", "cols"]),
        ("cols = 96", ["rows"]),
        ("assert cols % 32 == 0", ["rows"]),
    ],
)
def test_own_inputs_are_tried_at_other_sizes(workshop, setup, free):
    file = load_own(workshop, setup)
    assert free_axes.variable_axes(file) == []
    assert free_axes.drawable_axes(file) == free
    fixed = free_axes.fixed_axes(file)
    assert set(fixed) == {"rows", "cols"} - set(free)
    assert all("inputs()" in reason for reason in fixed.values())


def test_own_inputs_vary_along_the_axis_that_they_name(workshop):
    file = load_own(workshop, "", along="rows")
    assert free_axes.variable_axes(file) == free_axes.drawable_axes(file) == ["rows"]
    assert "drawn along `rows`" in free_axes.fixed_axes(file)["cols"]


def test_sizes_that_do_not_fit_together_come_one_by_one(workshop):
    file = load_own(workshop, "assert rows < cols")
    derived = {workload.name: workload.axes for workload in odd.derive_odd_workloads(file)}
    assert derived["odd-primes"] == {"rows": 67, "cols": 96}
    assert derived["odd-ones"] == {"rows": 1, "cols": 96}
    near = odd.draw_near_workloads(file)
    assert len(near) == 2
    assert all(workload.axes["rows"] % 8 and workload.axes["cols"] % 8 for workload in near)


def test_a_judgement_draws_only_sizes_that_own_inputs_take(workshop):
    file = load_own(workshop, "assert rows <= 2 * cols")
    drawn = shapes.draw_class_workloads(file, file.definition.workloads)
    assert drawn
    assert all(workload.axes["rows"] <= 2 * workload.axes["cols"] for workload in drawn)
    assert len({workload.scalars.get("bias") for workload in drawn}) > 1
