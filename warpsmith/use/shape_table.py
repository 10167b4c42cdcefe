"""Table of a map: the version that runs at a shape, for judged shapes and between them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpsmith.core.definition import Definition
from warpsmith.lab.performance_map.models import PerformanceMap

MOST_STEP = 8
"""Largest factor between the sizes of a box along an axis. Chosen: the middle of a wider one is too far from what
was judged."""

ALIGNMENT = 16
"""Greatest divisor that a size along the last dimension of tensors must share with the corners: kernels choose the
width of loads by it."""

Kind = tuple[object, ...]
"""Type of the workload's tensors, then the integers and switches of a call."""

Sizes = tuple[int, ...]
"""Size of each axis, in the table's order."""


@dataclass(frozen=True)
class Box:
    """Judged shapes that span a box, all of which run the same version."""

    least: Sizes
    """Smallest size of each axis."""
    most: Sizes
    """Largest size of each axis."""
    solution: str
    """Version that runs inside."""

    def holds(self, sizes: Sizes, aligned: Sequence[bool]) -> bool:
        """Return whether a shape lies in the box, and is aligned as the corners are along the `aligned` axes."""
        return all(
            low <= size <= high and (low == high or not strict or size % math.gcd(low, high, ALIGNMENT) == 0)
            for low, size, high, strict in zip(self.least, sizes, self.most, aligned, strict=True)
        )


class ShapeTable:
    """Version by shape, from a map.

    At a judged shape its own version runs. Another shape takes the version of a box whose corners were all judged,
    if all judged shapes inside agree, and if all such boxes around the shape do. All others run the best single
    version.
    """

    def __init__(self, record: PerformanceMap, definition: Definition, axes: Sequence[str]) -> None:
        """Build the table.

        Args:
            record: the map.
            definition: definition of its operator.
            axes: axes whose sizes a call shows.
        """
        self.best, self.axes = record.best, tuple(axes)
        self.numbers = [name for name, spec in definition.free_scalars.items() if spec.type != "float"]
        """Inputs whose values are part of a shape's kind."""
        self.typed = any(spec.dtype == "workload" for spec in definition.tensor_inputs.values())
        """True if the type of the workload's tensors is part of a shape's kind."""
        self._aligned = [axis in _last_axes(definition) for axis in self.axes]
        self._points: dict[Kind, dict[Sizes, str]] = {}
        hidden: dict[str, set[int]] = {}
        for cell in record.cells:
            workload, sizes = cell.workload, definition.sizes(cell.workload)
            for axis in set(sizes) - set(self.axes):
                hidden.setdefault(axis, set()).add(sizes[axis])
            scalars = definition.scalars(workload)
            kind = (workload.dtype if self.typed else "", *(scalars[name] for name in self.numbers))
            points = self._points.setdefault(kind, {})
            key = tuple(sizes[axis] for axis in self.axes)
            points[key] = cell.solution if points.get(key, cell.solution) == cell.solution else self.best
        if any(len(values) > 1 for values in hidden.values()):  # a call does not show which of them it is
            self._points = {}
        self._boxes = {kind: list(agreeing_boxes(points)) for kind, points in self._points.items()}

    def solution_at(self, kind: Kind, sizes: Mapping[str, int]) -> str:
        """Return the version that runs at a shape."""
        key = tuple(sizes[axis] for axis in self.axes)
        judged = self._points.get(kind, {}).get(key)
        if judged is not None:
            return judged
        agreed = {box.solution for box in self._boxes.get(kind, ()) if box.holds(key, self._aligned)}
        return agreed.pop() if len(agreed) == 1 else self.best


def agreeing_boxes(points: Mapping[Sizes, str]) -> Iterator[Box]:
    """Yield every box whose corners were all judged and in which all judged shapes run the same version.

    Args:
        points: sizes of each judged shape, and the version that runs there.
    """
    for least, most in itertools.product(points, points):
        pairs = list(zip(least, most, strict=True))
        if least == most or any(not low <= high <= MOST_STEP * low for low, high in pairs):
            continue
        corners = itertools.product(*(dict.fromkeys(pair) for pair in pairs))
        if not all(corner in points for corner in corners):
            continue
        inside = {
            solution
            for sizes, solution in points.items()
            if all(low <= size <= high for (low, high), size in zip(pairs, sizes, strict=True))
        }
        if len(inside) == 1:
            yield Box(least, most, inside.pop())


def _last_axes(definition: Definition) -> set[str]:
    """Return the axes in the last dimension of the tensors with the most dimensions."""
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    most = max(len(spec.shape) for spec in specs)
    last = [str(spec.shape[-1]) for spec in specs if spec.shape and len(spec.shape) == most]
    return {name for text in last for name in re.findall(r"[A-Za-z_]\w*", text)}
