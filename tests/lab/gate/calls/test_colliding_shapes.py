"""Shapes that share weak keys with each other."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest
from lab_samples import SQUARE

from warpsmith.lab.gate.calls import colliding_shapes
from warpsmith.lab.operator import input_rules

ROWS = (
    SQUARE.replace('name="square"', 'name="rows"')
    .replace('axes={"n": "length"}', 'axes={"m": "rows", "n": "length"}')
    .replace('shape=("n",)', 'shape=("m", "n")')
    .replace('axes={"n": ', 'axes={"m": 3, "n": ')
    .replace('flops="n"', 'flops="m * n"')
)


@pytest.mark.parametrize(
    "key",
    [
        lambda a, b: a + b,
        lambda a, b: 31 * a + b,
        lambda a, b: (a << 10) + b,
        lambda a, b: a * b,
        lambda a, b: a ^ b,
        lambda a, b: f"{a}{b}",
        lambda a, b: (min(a, b), max(a, b)),
    ],
    ids=["sum", "31", "1024", "product", "exclusive or", "digits", "order"],
)
def test_each_key_is_that_of_two_shapes_in_either_order(workshop, key):
    file = workshop.load("rows", ROWS)
    drawn = colliding_shapes.draw_colliding_workloads(file, file.definition.workloads)
    sizes = [tuple(each.axes.values()) for each in drawn]
    half = len(sizes) // 2
    for group, own in ((sizes[:half], 0), (sizes[half:], half - 1)):
        others = [each for each in group if each != group[own]]
        assert key(*group[own]) in {key(*each) for each in others}
        assert all(min(each) > 0 for each in group)


def test_one_axis_has_none(workshop):
    file = workshop.load("square", SQUARE)
    assert colliding_shapes.draw_colliding_workloads(file, file.definition.workloads) == []


@pytest.mark.parametrize("text", [SQUARE, ROWS], ids=["one axis", "two axes"])
def test_there_are_more_shapes_than_eight_bits_count(workshop, text):
    file = workshop.load("square" if text is SQUARE else "rows", text)
    drawn = colliding_shapes.draw_many_workloads(file, file.definition.workloads)
    assert len({tuple(each.axes.values()) for each in drawn}) == len(drawn) == input_rules.MANY_SHAPES > 256
    assert max(file.definition.elements(each) for each in drawn) <= 3 * input_rules.MANY_SIZES


def test_none_follow_when_the_time_is_over_and_none_without_room(workshop, monkeypatch):
    file = workshop.load("rows", ROWS)
    judged = file.definition.workloads
    monkeypatch.setattr(colliding_shapes, "has_room", lambda *_: True)
    assert len(list(colliding_shapes.take_colliding_workloads(file, judged, None, "cpu"))) > 320
    monkeypatch.setattr(colliding_shapes, "time", SimpleNamespace(monotonic=count().__next__))
    monkeypatch.setattr(input_rules, "COLLIDING_SECONDS", {"cpu": 3.5})
    assert len(list(colliding_shapes.take_colliding_workloads(file, judged, None, "cpu"))) == 6
    monkeypatch.setattr(input_rules, "COLLIDING_SECONDS", {"cpu": 999})
    monkeypatch.setattr(colliding_shapes, "has_room", lambda *_: False)
    assert list(colliding_shapes.take_colliding_workloads(file, judged, None, "cpu")) == []


def test_a_judged_shape_comes_in_each_declared_type(workshop):
    text = ROWS.replace('axes={"m": 3, "n": 5000}', 'axes={"m": 3, "n": 5000}, dtype="float16", set="odd"')
    file = workshop.load("rows", text)
    drawn = colliding_shapes.list_in_other_types(file, file.definition.workloads)
    assert [(each.axes["n"], each.dtype) for each in drawn] == [
        (1000, "float32"), (1000, "float16"), (5000, "float16"), (5000, "float32"),
    ]  # fmt: skip
    assert colliding_shapes.list_in_other_types(file, file.definition.workloads[:1]) == []
