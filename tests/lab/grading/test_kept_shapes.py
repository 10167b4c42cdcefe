"""Shapes that keep some sizes of a judged one."""

from __future__ import annotations

import random

from lab_samples import SQUARE

from warpsmith.core.definition import shape_class
from warpsmith.lab.grading import kept_shapes, odd
from warpsmith.lab.operator import input_rules

STENCIL = (
    SQUARE.replace('axes={"n": "length"}', 'axes={"h": "rows", "w": "columns", "k": "taps"}')
    .replace('shape=("n",)', 'shape=("h", "w", "k")')
    .replace('axes={"n": 1000}', 'axes={"h": 40, "w": 200, "k": 4}')
    .replace('axes={"n": 5000}', 'axes={"h": 64, "w": 128, "k": 8}')
    .replace('flops="n"', 'flops="h * w * k"')
)


def test_a_tiny_size_stays_while_all_others_are_odd(workshop):
    file = workshop.load("square", STENCIL)
    judged = file.definition.workloads
    for seed in range(10):
        drawn = kept_shapes.draw_kept_workloads(file, judged, seed=seed)
        assert len(drawn) == input_rules.KEPT_SHAPES["cpu"]
        assert {(shape_class(each.name), each.set) for each in drawn} == {("kept", "odd")}
        assert {each.axes["k"] for each in drawn[:2]} == {4, 8}
        assert all(each.axes[axis] % 2 for each in drawn[:2] for axis in ("h", "w"))
        assert max(map(file.definition.elements, drawn)) <= 2 * input_rules.ROUND_ELEMENTS


def test_any_axis_keeps_its_size_by_chance(workshop):
    file = workshop.load("square", STENCIL)
    kept = set()
    for seed in range(30):
        *_, drawn = kept_shapes.draw_kept_workloads(file, file.definition.workloads, seed=seed)
        kept |= {axis for axis, size in drawn.axes.items() if size % 2 == 0}
        assert any(size % 2 for size in drawn.axes.values())
    assert kept == {"h", "w", "k"}


def test_one_axis_alone_keeps_nothing(workshop):
    file = workshop.load("square", SQUARE)
    assert kept_shapes.draw_kept_workloads(file, file.definition.workloads, seed=1) == []


def test_an_odd_size_is_another_one_nearby():
    chance = random.Random(1)
    for size in (1, 3, 8, 257):
        drawn = {odd.draw_near_size(size, chance, tile=2, least=3) for _ in range(200)}
        assert size not in drawn
        assert all(other % 2 for other in drawn)
        assert all(abs(other - size) <= input_rules.NEAR_DISTANCE for other in drawn)


def test_what_is_kept_stays_while_promises_bind_the_others(workshop):
    text = STENCIL.replace('flops="h * w * k"', 'flops="h * w * k", constraints=("h % k == 0",)')
    file = workshop.load("square", text)
    for seed in range(10):
        drawn = kept_shapes.draw_kept_workloads(file, file.definition.workloads, seed=seed)
        assert len(drawn) == input_rules.KEPT_SHAPES["cpu"]
        assert {each.axes["k"] for each in drawn[:2]} == {4, 8}
        assert all(each.axes["h"] % each.axes["k"] == 0 for each in drawn)
        assert all(each.axes["w"] % 2 for each in drawn[:2]), "no promise binds it"
