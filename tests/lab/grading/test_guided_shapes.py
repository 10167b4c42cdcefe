"""Shapes drawn at numbers of the version's source."""

from __future__ import annotations

from math import prod

from lab_samples import SQUARE

from warpsmith.core.definition import shape_class
from warpsmith.lab.grading import guided_shapes, shapes
from warpsmith.lab.operator import input_rules

PLANE = (
    SQUARE.replace('axes={"n": "length"}', 'axes={"rows": "tokens", "cols": "features"}')
    .replace('shape=("n",)', 'shape=("rows", "cols")')
    .replace('axes={"n": 1000}', 'axes={"rows": 8, "cols": 200}')
    .replace('axes={"n": 5000}', 'axes={"rows": 16, "cols": 128}')
    .replace('flops="n"', 'flops="rows * cols"')
)


def draw(file, numbers, seed, **options):
    judged = file.definition.select("representative")
    return guided_shapes.draw_guided_workloads(file, judged, [], numbers, seed=seed, **options)


def test_sizes_beyond_below_and_at_a_number(workshop):
    file, number = workshop.load("square", PLANE), 70_001
    sizes = {size for seed in range(40) for w in draw(file, {number}, seed) for size in w.axes.values()}
    assert {number - 1, number, number + 1} <= sizes
    assert any(number + 1 < size <= number + input_rules.GUIDED_BEYOND for size in sizes)
    assert any(size > number * input_rules.GUIDED_FACTORS[0] - 1 for size in sizes)


def test_element_counts_beyond_a_number(workshop):
    file, number = workshop.load("square", PLANE), 70_001
    counts = [
        prod(w.axes.values()) for seed in range(40) for w in draw(file, {number}, seed) if "rows*cols" in w.name
    ]
    assert any(number < count < 1.2 * number for count in counts)
    assert any(count <= number for count in counts)
    both = [w for seed in range(40) for w in draw(file, {number}, seed) if min(w.axes.values()) > 1]
    assert any("rows*cols" in workload.name for workload in both)


def test_numbers_that_nothing_lies_beyond_come_first(workshop):
    file = workshop.load("square", PLANE)
    for seed in range(10):
        drawn = draw(file, {3, 5, 9, 12, 50_000}, seed)
        assert len(drawn) == input_rules.GUIDED_SHAPES["cpu"]
        assert "50000" in drawn[0].name
        assert {shape_class(workload.name) for workload in drawn} == {shapes.GUIDED}
        assert {workload.set for workload in drawn} == {"full"}


def test_shapes_stay_within_memory_and_time(workshop):
    file, bound = workshop.load("square", PLANE), input_rules.LARGER_BYTES["cpu"]
    definition = file.definition
    for seed in range(10):
        drawn = draw(file, {3_000_000, 5_000_000, 1 << 40}, seed)
        first = {workload.name.split("-")[2]: workload for workload in reversed(drawn)}
        others = [workload for workload in drawn if workload not in first.values()]
        assert all(definition.elements(workload) * 4 <= bound for workload in drawn)
        assert sum(map(definition.elements, others)) <= input_rules.GUIDED_ELEMENTS


def test_what_a_large_number_counts_is_not_guessed(workshop):
    file, number = workshop.load("square", PLANE), 9 << 20
    for seed in range(10):
        drawn = draw(file, {number}, seed)
        assert {workload.name.split("-")[2] for workload in drawn} == {"rows", "cols", "rows*cols"}


def test_a_gpu_keeps_axes_within_the_usual_factor(workshop):
    file = workshop.load("square", PLANE.replace("return x * x", "return x * x.sum(0, keepdim=True).sum(1)"))
    most = input_rules.LARGER_FACTORS[-1]
    for seed in range(10):
        for workload in draw(file, {150, 70_000}, seed, device="cuda"):
            assert workload.axes["cols"] <= most * 200
            assert workload.axes["rows"] <= most * 16


def test_an_interpreter_gets_one_small_shape(workshop):
    file = workshop.load("square", PLANE)
    (workload,) = draw(file, {300, 70_001}, 1, interpreted=True)
    assert file.definition.elements(workload) <= input_rules.NEAR_ELEMENTS_INTERPRETED


def test_axes_that_callers_may_not_choose_stay(workshop):
    file = workshop.load("square", PLANE.replace("outputs=", 'constraints=("the sizes are even",), outputs='))
    assert draw(file, {70_001}, 1) == []
    file = workshop.load("other", PLANE.replace("square", "other"))
    assert draw(file, {0, 1, 0.5}, 1) == []


def test_no_tensor_has_a_size_below_zero(workshop):
    before = 'outputs={"y": TensorSpec(shape=("rows", "cols"))}'
    text = PLANE.replace(before, before.replace('"cols"', '"cols - rows + 1"'))
    assert text != PLANE
    file = workshop.load("square", text)
    drawn = [workload for seed in range(20) for workload in draw(file, {300}, seed)]
    assert drawn
    assert all(file.definition.has_shapes(workload) for workload in drawn), "a size is below zero"


def test_what_a_promise_moves_stays_on_its_side_of_a_number(workshop):
    text = PLANE.replace('flops="rows * cols"', 'flops="rows * cols", constraints=("cols % 8 == 0",)')
    file, number = workshop.load("square", text), 70_001
    drawn = [w for seed in range(20) for w in draw(file, {number}, seed)]
    assert all(map(file.definition.has_shapes, drawn))
    along = {w.axes["cols"] for w in drawn if w.name.split("-")[2] == "cols"}
    assert {number - 1, number + 7} <= along, "the nearest multiples of both sides"
    assert any(prod(w.axes.values()) > number for w in drawn if "rows*cols" in w.name)
