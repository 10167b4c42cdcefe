"""Representative rows: a few rows that are far apart in their keys and in time, chosen once at the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping

from warpsmith.repo.benchmark import BenchmarkRow


def choose_representative_rows(
    rows: Mapping[str, BenchmarkRow], costs: Mapping[str, float], count: int
) -> tuple[str, ...]:
    """Choose the slowest row, then each time the row that is farthest from those chosen.

    Args:
        rows: rows of the baseline.
        costs: cost of each row.
        count: the most rows to choose.

    Returns:
        Names of the rows, in the table's order.
    """
    points = _points(rows, costs)
    chosen = [max(costs, key=lambda name: costs[name])]
    while len(chosen) < min(count, len(rows)):
        rest = [name for name in rows if name not in chosen]
        chosen.append(max(rest, key=lambda name: min(math.dist(points[name], points[other]) for other in chosen)))
    return tuple(name for name in rows if name in chosen)


def _points(rows: Mapping[str, BenchmarkRow], costs: Mapping[str, float]) -> dict[str, list[float]]:
    """Compute a point for each row: its time and each key column, ranked and scaled to 0..1."""
    axes = [_ranks({name: (costs[name], "") for name in rows})]
    for column in next(iter(rows.values())).keys:
        axes.append(_ranks({name: _value(row.keys[column]) for name, row in rows.items()}))
    return {name: [axis[name] for axis in axes] for name in rows}


def _value(text: str) -> tuple[float, str]:
    """Sort key of a text: numbers by value, before all words."""
    try:
        return float(text), ""
    except ValueError:
        return math.inf, text


def _ranks(values: Mapping[str, tuple[float, str]]) -> dict[str, float]:
    order = sorted(set(values.values()))
    last = max(len(order) - 1, 1)
    return {name: order.index(value) / last for name, value in values.items()}
