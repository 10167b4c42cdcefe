"""Axes of an operator with their names, its shapes at other sizes, and runs that formulas are solved from."""

from __future__ import annotations

import time

from warpsmith.core.arithmetic.size_formula import solve_size
from warpsmith.interchange.pytorch import formulas, ties
from warpsmith.interchange.pytorch.forward import Forward, ForwardRun, Shapes
from warpsmith.interchange.pytorch.reductions import UnusableOperator

_SECONDS = 60.0
"""Time for the search of the axes; dimensions that it does not reach stay fixed."""

_RAISED_BATCH = 6

_STEPS_AWAY = (0, 3, 7, 12, 45, 101)
"""Sizes to solve formulas from, in steps from the example; few of them would fit a wrong stride."""


class OperatorAxes:
    """Axes along which an operator accepts other sizes; dimensions of a module's parameters are fixed.

    `axes` has them by name, `example` their sizes in the example, and `samples` runs at several sizes of each.
    `is_incomplete` is true if the search ran out of time.
    """

    def __init__(self, forward: Forward, base: ForwardRun) -> None:
        self._forward = forward
        deadline = time.monotonic() + _SECONDS
        own = {name: forward.shapes[name] for name in forward.arguments}
        state = {name: shape for name, shape in forward.shapes.items() if name not in own}

        def is_accepted(shapes: Shapes) -> bool:
            return time.monotonic() < deadline and forward.runs(shapes | state)

        raised = ties.raise_leading_ones(own, is_accepted, _RAISED_BATCH)
        axes = ties.find_free_axes(raised, is_accepted)
        axes = self._solvable(axes, raised, state)
        self.is_incomplete = time.monotonic() >= deadline
        reserved = [*forward.values, *forward.keys, "out"]
        names = ties.axis_names(axes, own, reserved)
        self.axes = dict(zip(names, axes, strict=True))
        self._own, self._state = own, state
        self.example = {
            name: own[axis.dimensions[0].tensor][axis.dimensions[0].dimension] for name, axis in self.axes.items()
        }
        base_sizes = {name: axis.size for name, axis in self.axes.items()}
        self.samples = self._run_samples(base_sizes) if axes else [({}, base)]

    def _run_samples(self, base_sizes: dict[str, int]) -> list[formulas.Sample]:
        points = [base_sizes]
        for name, axis in self.axes.items():
            points += [base_sizes | {name: axis.size + k * axis.step} for k in _STEPS_AWAY[1:]]
        points.append(
            {name: axis.size + (25 + 2 * i) * axis.step for i, (name, axis) in enumerate(self.axes.items())}
        )
        runs = [(point, self.run_at(point)) for point in points]
        return [(point, run) for point, run in runs if run is not None]

    def _solvable(self, axes: list[ties.FreeAxis], raised: Shapes, state: Shapes) -> list[ties.FreeAxis]:
        """Leave out axes that a result's shape follows by no formula."""

        def shapes_at(axis: ties.FreeAxis, size: int) -> list[tuple[int, ...]] | None:
            try:
                run = self._forward.run(ties.resize_axis(raised, axis.dimensions, size) | state)
            except UnusableOperator:
                return None
            return list(run.shapes)

        solvable = []
        for axis in axes:
            sizes = [axis.size + k * axis.step for k in _STEPS_AWAY]
            shapes = [shapes_at(axis, size) for size in sizes]
            samples = [({"a": size}, s) for size, s in zip(sizes, shapes, strict=True) if s is not None]
            if len(samples) == len(sizes) and _follows_formula(samples):
                solvable.append(axis)
        return solvable

    def run_at(self, sizes: dict[str, int]) -> ForwardRun | None:
        """Run at these sizes of the axes; return None if that fails."""
        try:
            return self._forward.run(self.shapes_at(sizes))
        except UnusableOperator:
            return None

    def shapes_at(self, sizes: dict[str, int]) -> Shapes:
        """Return the shapes of all tensors at these sizes of the axes."""
        shapes = self._own
        for name, axis in self.axes.items():
            shapes = ties.resize_axis(shapes, axis.dimensions, sizes[name])
        return shapes | self._state

    def symbolic_shape(self, name: str) -> list[str | int]:
        """Return the shape of a tensor in names of axes, and numbers where it is fixed."""
        shape: list[str | int] = list(self._forward.shapes[name])
        for axis_name, axis in self.axes.items():
            for d in axis.dimensions:
                if d.tensor == name:
                    shape[d.dimension] = axis_name if d.ratio == 1 else f"{d.ratio} * {axis_name}"
        return shape

    def is_free(self, tensor: str, dimension: int) -> bool:
        """Return whether a dimension belongs to an axis."""
        return any(
            (d.tensor, d.dimension) == (tensor, dimension) for axis in self.axes.values() for d in axis.dimensions
        )


def _follows_formula(samples: list[tuple[dict[str, int], list[tuple[int, ...]]]]) -> bool:
    sizes = [size for size, _ in samples]
    results = list(zip(*(shapes for _, shapes in samples), strict=True))
    if any(len({len(shape) for shape in shapes}) > 1 for shapes in results):
        return False
    return all(solve_size(values, sizes) is not None for shapes in results for values in zip(*shapes, strict=True))
