"""Shapes of a map: the definition's timed workloads, a grid between them, and sizes that a user names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from warpsmith.core.definition import Definition, Workload
from warpsmith.errors import Misuse
from warpsmith.lab.grading import free_axes
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.tuning.sizes import parse_size

MOST_SHAPES = 64
"""Shapes of a map at most. Chosen: a table is to be read, and each shape takes part in the correction for many."""

_BELOW = 8
"""The grid begins this many times below the smallest timed size of an axis. Chosen."""

_STEP = 64
"""Sizes of the grid are multiples of the common divisor of the timed sizes, up to this."""

_SAME = 1.4
"""A size of the grid that is nearer to a timed one than this factor becomes that one, so that it is a corner."""


def map_workloads(file: DefinitionFile, count: int, sizes: Sequence[str] = ()) -> list[Workload]:
    """Return the workloads of a map: all timed ones, then the sizes that a user names, then a grid up to `count`.

    Args:
        file: the definition.
        count: shapes in all; the timed workloads and the named sizes are in it even if they are more.
        sizes: sizes such as `rows=2048,cols=4096:bfloat16`.

    Raises:
        Misuse: a size is none, or an axis may not have it; there are fewer than two shapes, or too many.
    """
    definition, free = file.definition, free_axes.variable_axes(file)
    timed = definition.select("representative", "full")
    extra = [_named_workload(definition, timed, free, size) for size in dict.fromkeys(sizes)]
    chosen = [*timed, *extra]
    if len(chosen) > MOST_SHAPES:
        raise Misuse(f"{len(chosen)} shapes are more than a map's {MOST_SHAPES}; name fewer sizes.")
    chosen += _draw_grid(definition, timed, free, count - len(chosen), {_key(definition, each) for each in chosen})
    if len({_key(definition, each) for each in chosen}) < 2:
        raise Misuse(
            f"{definition.name} has one timed shape and no axis that may have another size, so there is nothing to"
            " map; add workloads to its definition."
        )
    return chosen


def _named_workload(definition: Definition, timed: Sequence[Workload], free: Sequence[str], text: str) -> Workload:
    """Return the workload of a size, whose axes are free or have a size that is timed anyway."""
    workload = parse_size(definition, timed, text)
    for axis, size in workload.axes.items():
        declared = sorted({each.axes[axis] for each in timed})
        if axis not in free and size not in declared:
            sizes = ", ".join(map(str, declared))
            raise Misuse(
                f"--size {text}: the definition of {definition.name} promises more of `{axis}` than its size;"
                f" it may be {sizes}."
            )
    if workload.dtype not in {each.dtype for each in timed}:
        types = ", ".join(sorted({each.dtype for each in timed}))
        raise Misuse(f"--size {text}: {definition.name} is not judged at `{workload.dtype}`, but at {types}.")
    return workload


def _draw_grid(
    definition: Definition,
    timed: Sequence[Workload],
    free: Sequence[str],
    room: int,
    present: set[tuple[object, ...]],
) -> list[Workload]:
    """Return up to `room` workloads on a grid over the free axes, of the type of the largest timed workload.

    None has more elements than that. The axis with the widest steps gets the next line, as long as there is room.
    """
    largest = max(timed, key=definition.elements)
    lines = dict.fromkeys(free, 1)
    grid: list[Workload] = []
    blocked: set[str] = set()
    while len(blocked) < len(free):
        axis = max(
            (axis for axis in free if axis not in blocked), key=lambda axis: _step(timed, axis, lines[axis])
        )
        more = {**lines, axis: lines[axis] + 1}
        wider = _grid_of(definition, timed, largest, more, present)
        if len(wider) > room or _step(timed, axis, lines[axis]) <= 2:
            blocked.add(axis)
        else:
            lines, grid = more, wider
    return grid


def _grid_of(
    definition: Definition,
    timed: Sequence[Workload],
    largest: Workload,
    lines: dict[str, int],
    present: set[tuple[object, ...]],
) -> list[Workload]:
    sizes = {axis: _line_sizes(sorted({w.axes[axis] for w in timed}), count) for axis, count in lines.items()}
    grid: dict[tuple[object, ...], Workload] = {}
    for lengths in itertools.product(*sizes.values()):
        axes = dict(zip(sizes, lengths, strict=True))
        workload = largest.model_copy(
            update={"name": format_sizes(axes), "axes": {**largest.axes, **axes}, "set": "full", "weight": None}
        )
        key = _key(definition, workload)
        is_called = definition.has_shapes(workload)
        if is_called and key not in present and definition.elements(workload) <= definition.elements(largest):
            grid[key] = workload
    return list(grid.values())


def _line_sizes(declared: Sequence[int], count: int) -> list[int]:
    """Return `count` sizes of an axis, a constant factor apart where they can be; one is the largest timed one."""
    unit = min(math.gcd(*declared), _STEP)
    least, most = max(1, declared[0] // _BELOW), declared[-1]
    while unit > least:
        unit = (unit + 1) // 2
    steps = count - 1
    ideal = [most * (least / most) ** (index / steps) for index in range(count)] if steps else [most]
    return sorted({_round_size(size, unit, declared) for size in ideal})


def _round_size(size: float, unit: int, declared: Iterable[int]) -> int:
    nearest = min(declared, key=lambda other: abs(math.log(other / size)))
    if max(nearest / size, size / nearest) < _SAME:
        return nearest
    return max(unit, round(size / unit) * unit)


def _step(timed: Sequence[Workload], axis: str, count: int) -> float:
    """Return the factor between two lines of an axis if it has `count` of them."""
    sizes = [workload.axes[axis] for workload in timed]
    whole = max(sizes) / max(1, min(sizes) // _BELOW)
    return float(whole ** (1 / (count - 1))) if count > 1 else whole * whole


def format_sizes(axes: dict[str, int]) -> str:
    """Format sizes as `--size` takes them: `rows=2048,cols=4096`."""
    return ",".join(f"{axis}={length}" for axis, length in axes.items())[:80]


def _key(definition: Definition, workload: Workload) -> tuple[object, ...]:
    sizes = tuple(sorted(definition.sizes(workload).items()))
    return sizes, workload.dtype, workload.distribution, tuple(sorted(definition.scalars(workload).items()))
