"""Formulas: how a name of the vocabulary follows from a profiler's own counters, with alternatives in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple


def _itself(value: float) -> float:
    return value


class Formula(NamedTuple):
    """One way to a value."""

    needs: tuple[str, ...]
    """The profiler's counters, all of them required."""
    compute: Callable[..., float] = _itself
    """From their values, in that order; dividing by zero says that there is no value."""
    asked: bool = True
    """Whether a collector asks for them; False for counters that only reports made otherwise hold."""


Table = Mapping[str, tuple[Formula, ...]]
"""Name of the vocabulary to its formulas, the best first."""


def derive(table: Table, reading: Mapping[str, float]) -> tuple[dict[str, float], tuple[str, ...]]:
    """The values that the reading gives, and the names that it does not; NaN and infinity count as not there."""
    known = {name: value for name, value in reading.items() if math.isfinite(value)}
    found = {name: _value(formulas, known) for name, formulas in table.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return values, tuple(name for name in found if name not in values)


def share(part: float, *whole: float) -> float:
    """`part` of the sum of `whole`, percent."""
    return 100 * part / sum(whole)


def ratio(part: float, whole: float) -> float:
    """`part` over `whole`."""
    return part / whole


def total(*parts: float) -> float:
    """The sum."""
    return sum(parts)


def _value(formulas: tuple[Formula, ...], known: Mapping[str, float]) -> float | None:
    """From the first formula whose counters are all there; where it divides by zero, no other may guess."""
    for formula in formulas:
        if all(need in known for need in formula.needs):
            try:
                return formula.compute(*(known[need] for need in formula.needs))
            except ZeroDivisionError:
                return None
    return None
