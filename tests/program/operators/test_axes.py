"""Sizes that belong together, layouts, and what follows from sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.program.operators import axes, layout

SIZES = st.integers(2, 40)


@given(
    st.permutations(["a", "b", "c"]), st.integers(1, 3), st.integers(1, 4), st.lists(SIZES, min_size=6, max_size=6)
)
def test_a_product_of_axes_is_found_again(names, count, factor, sizes):
    samples = [
        dict(zip("abc", at, strict=True)) for at in ((3, 5, 7), (67, 5, 7), (3, 67, 7), (3, 5, 67), sizes[:3])
    ]
    wanted = " * ".join([str(factor), *names[:count]])
    values = [int(evaluate(wanted, sample)) for sample in samples]
    found = axes.solve_size(values, samples)
    assert found is not None
    assert [evaluate(str(found), sample) for sample in samples] == values


@given(st.integers(2, 12), st.integers(0, 3), st.lists(st.integers(1, 3), min_size=12, max_size=12))
def test_a_sum_of_many_axes_is_found_again(count, more, factors):
    at = {f"d{n}": 3 + n for n in range(count)}
    samples = [at, *({**at, name: size} for name in at for size in (67, 129))]
    values = [more + sum(f * sample[name] for f, name in zip(factors, at)) for sample in samples]  # noqa: B905
    found = axes.solve_size(values, samples)
    assert [evaluate(str(found), sample) for sample in samples] == values
    assert str(found).count("+") == count - 1 + (more > 0)


def test_a_sum_that_few_calls_only_allow_is_no_rule():
    few = [{"a": 3, "b": 5, "c": 2}, {"a": 4, "b": 5, "c": 3}, {"a": 4, "b": 6, "c": 5}]
    assert axes.solve_size([10, 12, 15], few) is None
    assert axes.solve_size([15, 335, 201], [{"a": 3, "b": 5}, {"a": 67, "b": 5}, {"a": 3, "b": 67}]) == "a * b"


def test_lines_numbers_and_what_follows_no_rule():
    samples = [{"n": 8, "k": 3}, {"n": 67, "k": 3}, {"n": 129, "k": 3}]
    assert axes.solve_size([4, 4, 4], samples) == 4
    assert axes.solve_size([6, 65, 127], samples) == "n - 2"
    assert axes.solve_size([17, 135, 259], samples) == "2 * n + 1"
    assert axes.solve_size([4, 34, 65], samples) is None


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
