"""Layout of a dense tensor: a contiguous tensor and a permutation of its dimensions."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """Return the permutation that makes the tensor from a contiguous one; None if none is needed or none fits.

    `contiguous.permute(order)` has the tensor's shape and strides.
    """
    if is_contiguous(shape, strides):
        return None
    by_stride = sorted(range(len(shape)), key=lambda dimension: (-strides[dimension], dimension))
    if not is_contiguous(
        [shape[dimension] for dimension in by_stride], [strides[dimension] for dimension in by_stride]
    ):
        return None
    return [by_stride.index(dimension) for dimension in range(len(shape))]


def stored_shape(shape: Sequence[int], order: Sequence[int] | None) -> list[int]:
    """Return the shape of the contiguous tensor that `order` permutes into this shape."""
    if order is None:
        return list(shape)
    return [shape[dimension] for dimension in inverse_order(order)]


def inverse_order(order: Sequence[int]) -> list[int]:
    """Return the permutation that undoes another."""
    return [list(order).index(dimension) for dimension in range(len(order))]


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the last dimension varies fastest without gaps; strides of sizes of 1 are ignored."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether the elements fill one block of memory, each once."""
    return is_contiguous(shape, strides) or memory_order(shape, strides) is not None
