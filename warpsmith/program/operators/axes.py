"""Axes: find which dimensions of an operator's tensors share a size, by calling it with other sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod

TensorDimension = tuple[int, int]
"""Index of a tensor, and of one of its dimensions."""

DERIVED_SIZES = (1, 67, 129)
"""Odd sizes that the lab derives for a variable axis."""

_MAX_FACTORS = 4
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


def solve_size(values: Sequence[int], samples: Sequence[Mapping[str, int]]) -> str | int | None:
    """Find a formula for these values: a number, `a * axis + b`, a sum of such terms or a product; else None.

    Args:
        values: one per sample.
        samples: the sizes of the axes.
    """
    if len(set(values)) == 1:
        return values[0]
    names = list(samples[0])
    for name in names:
        formula = _linear_formula(name, [sample[name] for sample in samples], values)
        if formula is not None:
            return formula
    formula = _sum_formula(names, samples, values)
    if formula is not None:
        return formula
    for count in range(2, _MAX_FACTORS + 1):
        for factors in combinations(names, count):
            products = [prod(sample[name] for name in factors) for sample in samples]
            factor = _common_factor(values, products)
            if factor is not None:
                return " * ".join((*([str(factor)] if factor != 1 else []), *factors))
    return None


def _linear_formula(name: str, sizes: Sequence[int], values: Sequence[int]) -> str | None:
    """Return `a * name + b` if all values are on that line."""
    pairs = sorted(set(zip(sizes, values, strict=True)))
    if len({size for size, _ in pairs}) != len(pairs) or len(pairs) < 2:
        return None
    (x, y), (u, v) = pairs[0], pairs[-1]
    if (v - y) % (u - x):
        return None
    slope = (v - y) // (u - x)
    shift = y - slope * x
    if slope < 1 or any(slope * size + shift != value for size, value in pairs):
        return None
    product = _format_product(slope, name)
    return product if shift == 0 else f"{product} {'+' if shift > 0 else '-'} {abs(shift)}"


def _sum_formula(names: Sequence[str], samples: Sequence[Mapping[str, int]], values: Sequence[int]) -> str | None:
    """Return `a * x + b * y + c` if only these coefficients fit and none is negative.

    A fit to a product has a negative `c`.
    """
    import numpy as np

    rows = np.array([[*(sample[name] for name in names), 1] for sample in samples])
    solved, _, rank, _ = np.linalg.lstsq(rows, np.array(values), rcond=None)
    numbers = np.rint(solved).astype(int)
    if rank <= len(names) or numbers.min() < 0 or (rows @ numbers != values).any():
        return None
    *factors, shift = numbers.tolist()
    terms = [_format_product(factor, name) for name, factor in zip(names, factors, strict=True) if factor]
    return " + ".join([*terms, *([str(shift)] if shift else [])])


def _format_product(factor: int, name: str) -> str:
    return name if factor == 1 else f"{factor} * {name}"


def _common_factor(values: Sequence[int], products: Sequence[int]) -> int | None:
    """Return the factor by which every product is multiplied; None if there is no common one."""
    if not all(products) or any(value % product for value, product in zip(values, products, strict=True)):
        return None
    factors = {value // product for value, product in zip(values, products, strict=True)}
    return factors.pop() if len(factors) == 1 and 0 not in factors else None
