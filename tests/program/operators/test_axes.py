"""Sizes that belong together, layouts, and what follows from sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.program.operators import axes, layout

SIZES = st.integers(2, 40)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4).flatmap(
        lambda s: st.tuples(st.just(s), st.permutations(range(len(s))))
    )
)
def test_a_dense_tensor_is_a_contiguous_one_and_an_order(drawn):
    shape, permutation = drawn
    torch = pytest.importorskip("torch")
    tensor = torch.empty(shape).permute(permutation)
    order = layout.memory_order(tensor.shape, tensor.stride())
    again = torch.empty(layout.stored_shape(tensor.shape, order)).permute(order or list(range(len(shape))))
    assert again.shape == tensor.shape
    assert layout.is_dense(tensor.shape, tensor.stride())
    assert [a for a, n in zip(again.stride(), again.shape, strict=True) if n > 1] == [
        b for b, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1
    ]


def test_slices_are_not_dense():
    torch = pytest.importorskip("torch")
    tensor = torch.empty(4, 6)[:, :3]
    assert not layout.is_dense(tensor.shape, tensor.stride())
    assert not layout.is_dense((4, 3), (0, 1))


def test_equal_sizes_are_one_axis_but_apart_within_a_tensor_where_that_works():
    ((sizes, places),) = axes.group_by_sizes({0: [(8, 8, 1)], 1: [(8, 8, 1)]})
    assert sizes == (8,)
    pairs = [{(0, 0), (1, 0)}, {(0, 1), (1, 1)}]

    def elementwise(changed):
        return set(changed) in (*pairs, pairs[0] | pairs[1])

    assert sorted(map(sorted, (group for group, _ in axes.split_axes(places, elementwise)))) == sorted(
        map(sorted, pairs)
    )
    assert axes.split_axes(places, lambda changed: len(changed) == 4) == [(places, True)]
    assert axes.split_axes(places, lambda _: False) == [(places, False)]
