"""Axes: which sizes of an operator's tensors belong together, by calling it with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod

TensorDimension = tuple[int, int]
"""A tensor, and one of its dimensions."""

DERIVED_SIZES = (1, 67, 129)
"""Sizes that the lab derives along a variable axis."""

_MAX_FACTORS = 4
_OTHER_SIZE = 67


def group_by_sizes(
    shapes: Mapping[int, Sequence[Sequence[int]]],
) -> list[tuple[tuple[int, ...], list[TensorDimension]]]:
    """Dimensions that have the same sizes in all calls, as sizes and places; not those that are always 1.

    Args:
        shapes: tensor to its shape in each call.
    """
    found: dict[tuple[int, ...], list[TensorDimension]] = {}
    for tensor, calls in shapes.items():
        for dimension, sizes in enumerate(zip(*calls, strict=True)):
            if set(sizes) != {1}:
                found.setdefault(sizes, []).append((tensor, dimension))
    return list(found.items())


def split_axes(
    places: Sequence[TensorDimension], works: Callable[[Sequence[TensorDimension]], bool]
) -> list[tuple[list[TensorDimension], bool]]:
    """The places of one size that change together, each group with whether it can change at all.

    Dimensions of different tensors that have one size throughout are one axis: that they only happen to agree is
    rare, and an operator does not always check what it needs. Those of one tensor are apart where that works.

    Args:
        places: dimensions of one size.
        works: whether the operator takes another size at these places.
    """
    columns: dict[int, list[TensorDimension]] = {}
    for tensor in dict.fromkeys(tensor for tensor, _ in places):
        own = sorted((place for place in places if place[0] == tensor), reverse=True)
        for column, place in enumerate(own):
            columns.setdefault(column, []).append(place)
    if len(columns) > 1 and all(works(group) for group in columns.values()):
        return [(group, True) for group in columns.values()]
    return [(list(places), works(places))]


def other_size(size: int) -> int:
    """Another size to try in place of one."""
    return _OTHER_SIZE if size != _OTHER_SIZE else _OTHER_SIZE + 2


def solve_size(values: Sequence[int], samples: Sequence[Mapping[str, int]]) -> str | int | None:
    """What gives these values at these sizes: a number, `a * axis + b`, a sum of those, a product; else None.

    Args:
        values: one a sample.
        samples: axis sizes.
    """
    if len(set(values)) == 1:
        return values[0]
    names = list(samples[0])
    for name in names:
        told = _linear_formula(name, [sample[name] for sample in samples], values)
        if told is not None:
            return told
    told = _sum_formula(names, samples, values)
    if told is not None:
        return told
    for count in range(2, _MAX_FACTORS + 1):
        for chosen in combinations(names, count):
            products = [prod(sample[name] for name in chosen) for sample in samples]
            factor = _common_factor(values, products)
            if factor is not None:
                return " * ".join((*([str(factor)] if factor != 1 else []), *chosen))
    return None


def _linear_formula(name: str, sizes: Sequence[int], values: Sequence[int]) -> str | None:
    """`a * name + b` where all values are on that line."""
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
    grown = _format_product(slope, name)
    return grown if shift == 0 else f"{grown} {'+' if shift > 0 else '-'} {abs(shift)}"


def _sum_formula(names: Sequence[str], samples: Sequence[Mapping[str, int]], values: Sequence[int]) -> str | None:
    """`a * x + b * y + c` where only these numbers fit; none is negative, as `c` would be for a product."""
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
    """What all products are to be multiplied by."""
    if not all(products) or any(value % product for value, product in zip(values, products, strict=True)):
        return None
    factors = {value // product for value, product in zip(values, products, strict=True)}
    return factors.pop() if len(factors) == 1 and 0 not in factors else None
