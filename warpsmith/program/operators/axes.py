"""Axes: find which dimensions of an operator's tensors share a size, by calling it with other sizes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

TensorDimension = tuple[int, int]
"""Index of a tensor, and of one of its dimensions."""

DERIVED_SIZES = (1, 67, 129)
"""Odd sizes that the lab derives for a variable axis."""

_OTHER_SIZE = 67


def group_by_sizes(
    shapes: Mapping[int, Sequence[Sequence[int]]],
) -> list[tuple[tuple[int, ...], list[TensorDimension]]]:
    """Group the dimensions that have the same sizes in all calls; skip those that are always 1.

    Args:
        shapes: maps each tensor to its shape in each call.

    Returns:
        Sizes, one per call, with the dimensions that have them.
    """
    groups: dict[tuple[int, ...], list[TensorDimension]] = {}
    for tensor, calls in shapes.items():
        for dimension, sizes in enumerate(zip(*calls, strict=True)):
            if set(sizes) != {1}:
                groups.setdefault(sizes, []).append((tensor, dimension))
    return list(groups.items())


def split_axes(
    dimensions: Sequence[TensorDimension], is_accepted: Callable[[Sequence[TensorDimension]], bool]
) -> list[tuple[list[TensorDimension], bool]]:
    """Split the dimensions of one size into axes, each with whether its size can change.

    Dimensions of different tensors that always have the same size are one axis: they rarely agree by chance, and
    an operator does not always check the sizes it relies on. Dimensions of the same tensor are separate axes if
    the operator accepts that.

    Args:
        dimensions: dimensions of one size.
        is_accepted: tells whether the operator accepts another size at these dimensions.
    """
    columns: dict[int, list[TensorDimension]] = {}
    for tensor in dict.fromkeys(tensor for tensor, _ in dimensions):
        tensor_dimensions = sorted((dimension for dimension in dimensions if dimension[0] == tensor), reverse=True)
        for column, dimension in enumerate(tensor_dimensions):
            columns.setdefault(column, []).append(dimension)
    if len(columns) > 1 and all(is_accepted(group) for group in columns.values()):
        return [(group, True) for group in columns.values()]
    return [(list(dimensions), is_accepted(dimensions))]


def other_size(size: int) -> int:
    """Return another size to try in place of a size."""
    return _OTHER_SIZE if size != _OTHER_SIZE else _OTHER_SIZE + 2


@contextmanager
def contentless_tensors() -> Iterator[None]:
    """Enter a mode of tensors without content, without gradients, in which a call that fails logs nothing.

    A failure answers whether an operator takes some sizes; PyTorch logs it with its whole trace.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    logger = logging.getLogger(FakeTensorMode.__module__)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with FakeTensorMode(), torch.no_grad():
            yield
    finally:
        logger.setLevel(level)
