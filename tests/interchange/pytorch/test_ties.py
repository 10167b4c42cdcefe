"""Dimensions that have to change together, found with plain functions over shapes."""

import pytest

from warpsmith.interchange.pytorch.ties import axis_names, find_free_axes, raise_leading_ones


def groups(shapes, accepts):
    return [
        (axis.size, axis.step, {(d.tensor, d.dimension, d.ratio) for d in axis.dimensions})
        for axis in find_free_axes(shapes, accepts)
    ]


def test_equal_sizes_are_two_axes_unless_one_fails_alone():
    shapes = {"x": (64, 64), "w": (64,)}
    assert groups(shapes, lambda s: s["x"][1] == s["w"][0]) == [
        (64, 1, {("x", 0, 1)}),
        (64, 1, {("x", 1, 1), ("w", 0, 1)}),
    ]


def test_two_pairs_of_one_size_are_not_joined():
    shapes = {"q": (16, 8), "k": (16, 8), "v": (16, 8), "mask": (16, 16)}

    def accepts(s):
        tied = (s["q"][0] == s["mask"][0], s["k"][0] == s["v"][0] == s["mask"][1], s["q"][1] == s["k"][1])
        return all(tied)

    assert [members for _, _, members in groups(shapes, accepts)] == [
        {("q", 0, 1), ("mask", 0, 1)},
        {("q", 1, 1), ("k", 1, 1)},
        {("k", 0, 1), ("v", 0, 1), ("mask", 1, 1)},
        {("v", 1, 1)},
    ]


def test_multiples_change_with_what_they_are_multiples_of():
    shapes = {"h": (6, 32), "w": (128, 32), "b": (128,)}
    found = groups(shapes, lambda s: s["w"][0] == s["b"][0] == 4 * s["h"][1] and s["w"][1] == s["h"][1])
    assert found[1] == (32, 1, {("h", 1, 1), ("w", 1, 1), ("w", 0, 4), ("b", 0, 4)})


def test_an_axis_can_have_steps_and_a_size_can_be_fixed():
    shapes = {"x": (10, 48, 7)}
    found = groups(shapes, lambda s: s["x"][1] % 8 == 0 and s["x"][2] == 7)
    assert found == [(10, 1, {("x", 0, 1)}), (48, 8, {("x", 1, 1)})]


def test_a_size_that_can_only_grow_is_tied_to_what_limits_it():
    shapes = {"x": (30, 5), "ids": (30,)}
    found = groups(shapes, lambda s: s["ids"][0] <= s["x"][0])
    assert (30, 1, {("x", 0, 1), ("ids", 0, 1)}) in found


def test_a_batch_of_one_can_grow_and_a_broadcast_dimension_cannot():
    shapes = {"x": (1, 8, 4), "bias": (1, 1, 4)}
    assert raise_leading_ones(shapes, lambda _: True, 6) == {"x": (6, 8, 4), "bias": (1, 1, 4)}
    assert raise_leading_ones(shapes, lambda _: False, 6) == shapes


@pytest.mark.parametrize(
    ("shapes", "reserved", "names"),
    [
        ({"x": (3, 5)}, (), ["rows", "cols"]),
        ({"a": (3, 5), "b": (7, 11)}, (), ["a_rows", "a_cols", "b_rows", "b_cols"]),
        ({"x": (3, 5), "ids": (7,)}, (), ["rows", "cols", "length"]),
        ({"rows": (3, 5)}, ("rows",), ["rows_size", "cols"]),
        ({"x": (2, 3, 4, 5, 6, 7)}, (), ["d0", "d1", "d2", "d3", "d4", "d5"]),
    ],
)
def test_names_are_short_where_they_are_unique(shapes, reserved, names):
    axes = find_free_axes(shapes, lambda _: True)
    assert axis_names(axes, shapes, reserved) == names
