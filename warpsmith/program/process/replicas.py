"""Parameters that the ranks of a program hold in common: which of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Sketches = Mapping[str, Sequence[Sequence[Any]]]
"""Answer of the task `sketch`."""


def differing_parameters(ranks: Sequence[Sketches]) -> list[str]:
    """List the parameters with other values on another rank; of one name and shape, and not sharded.

    Args:
        ranks: sketches of each rank.
    """
    first, *others = [_by_name(sketches) for sketches in ranks]
    return [
        name
        for name, (shape, sketch) in first.items()
        if any(name in other and other[name][0] == shape and other[name][1] != sketch for other in others)
    ]


def _by_name(sketches: Sketches) -> dict[str, tuple[Sequence[int], Sequence[float]]]:
    return {
        name: (shape, sketch)
        for name, shape, floating, sketch, sharded in sketches["parameters"]
        if floating and not sharded
    }
