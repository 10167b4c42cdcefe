"""Formulas that compute a metric from a profiler's own counters, with alternatives in order of preference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple


def _identity(value: float) -> float:
    return value


class Formula(NamedTuple):
    """One way to compute a metric."""

    needs: tuple[str, ...]
    """Names of the profiler's counters that are all required."""
    compute: Callable[..., float] = _identity
    """Function of the counters' values in that order; it divides by zero where the metric has no value."""
    collected: bool = True
    """True if a collector requests the counters; False for counters that only other reports contain."""


FormulaTable = Mapping[str, tuple[Formula, ...]]
"""Metric name to its formulas, the best first."""


def derive_values(table: FormulaTable, reading: Mapping[str, float]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Compute every metric that the reading allows; return the values and the names without one.

    NaN and infinity in the reading count as missing.
    """
    finite = {name: value for name, value in reading.items() if math.isfinite(value)}
    results = {name: _value(formulas, finite) for name, formulas in table.items()}
    values = {name: value for name, value in results.items() if value is not None}
    return values, tuple(name for name in results if name not in values)


def percent_of(part: float, *whole: float) -> float:
    """Return `part` in percent of the sum of `whole`."""
    return 100 * part / sum(whole)


def ratio(part: float, whole: float) -> float:
    """Return `part` divided by `whole`."""
    return part / whole


def total(*parts: float) -> float:
    """Return the sum of `parts`."""
    return sum(parts)


def _value(formulas: tuple[Formula, ...], reading: Mapping[str, float]) -> float | None:
    """Apply the first formula whose counters are all present; if it divides by zero, there is no value."""
    for formula in formulas:
        if all(need in reading for need in formula.needs):
            try:
                return formula.compute(*(reading[need] for need in formula.needs))
            except ZeroDivisionError:
                return None
    return None
