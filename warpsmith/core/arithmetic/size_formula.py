"""Formulas of sizes over axes, which are solved from samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from math import prod

_MAX_FACTORS = 6
_STEPS = (2, 3, 4, 5, 7, 8, 14, 16, 32)
_FEWEST_SIZES = 3


def solve_size(values: Sequence[int], samples: Sequence[Mapping[str, int]]) -> str | int | None:
    """Find a formula: a number, `a * axis + b`, a sum of such terms, a product, `(axis + a) // b + c`; else None.

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
        for factors in combinations_with_replacement(names, count):
            products = [prod(sample[name] for name in factors) for sample in samples]
            factor = _common_factor(values, products)
            if factor is not None:
                return " * ".join((*([str(factor)] if factor != 1 else []), *factors))
    formulas = (_floor_formula(name, [sample[name] for sample in samples], values) for name in names)
    return next((formula for formula in formulas if formula is not None), None)


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


def _floor_formula(name: str, sizes: Sequence[int], values: Sequence[int]) -> str | None:
    """Return `(name + a) // b + c`, the size of windows with a stride, if all values fit; it needs three sizes."""
    if len(set(sizes)) < _FEWEST_SIZES:
        return None
    for step in _STEPS:
        for start in range(step):
            shift = values[0] - (sizes[0] + start) // step
            if all((size + start) // step + shift == value for size, value in zip(sizes, values, strict=True)):
                inner = f"({name} + {start})" if start else name
                sign = f" {'+' if shift > 0 else '-'} {abs(shift)}" if shift else ""
                return f"{inner} // {step}{sign}"
    return None


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
