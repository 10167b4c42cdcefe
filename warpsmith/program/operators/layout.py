"""Layout: a dense tensor in any order of its dimensions, as a contiguous one and a permutation."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """The permutation that makes a tensor out of a contiguous one; None: none is needed, or none does.

    `contiguous.permute(order)` has the tensor's shape and strides.
    """
    if is_contiguous(shape, strides):
        return None
    by_stride = sorted(range(len(shape)), key=lambda dimension: (-strides[dimension], dimension))
    if not is_contiguous([shape[one] for one in by_stride], [strides[one] for one in by_stride]):
        return None
    return [by_stride.index(dimension) for dimension in range(len(shape))]


def stored_shape(shape: Sequence[int], order: Sequence[int] | None) -> list[int]:
    """The shape of the contiguous tensor that `order` makes a tensor of this shape."""
    if order is None:
        return list(shape)
    return [shape[place] for place in inverse_order(order)]


def inverse_order(order: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return [list(order).index(place) for place in range(len(order))]


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the last dimension varies fastest and nothing lies between; the stride of a size of 1 is nothing."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether its elements fill one piece of memory, each once."""
    return is_contiguous(shape, strides) or memory_order(shape, strides) is not None
