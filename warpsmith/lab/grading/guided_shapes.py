"""Shapes drawn at the numbers of the version's own source: beyond each of them it may take another path."""

from __future__ import annotations

import random
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.grading import free_axes, odd, rows
from warpsmith.lab.grading.shapes import GUIDED
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.promised_sizes import fit_to_promises
from warpsmith.lab.operator.scalar_values import vary_scalars

Dims = tuple[str, ...]
"""Axes whose sizes are multiplied: a single one, or those of a tensor, whose elements are counted."""


class _GuidedSize(NamedTuple):
    """Size to draw at a number."""

    rank: int
    """0: no other shape is beyond the number; 1: all others are; 2: the number itself is not among them."""
    dims: Dims
    number: int
    size: int


def draw_guided_workloads(
    file: DefinitionFile,
    judged: Sequence[Workload],
    others: Sequence[Workload],
    numbers: Collection[float],
    *,
    interpreted: bool = False,
    device: str = "cpu",
    seed: int | None = None,
) -> list[Workload]:
    """Draw workloads at, below and beyond the numbers of a source along axes that callers may choose, and some
    whose tensors have that many elements.

    Numbers that no other shape lies beyond come first. The first shape of each axis or product is as large as a
    call may be, the further ones together have at most `input_rules.GUIDED_ELEMENTS` elements. A GPU's block has
    bounded room, and many numbers of a source are no sizes: there an axis that is no axis of rows stays within the
    factor that it may be longer by in other shapes.

    Args:
        file: the definition.
        judged: timed workloads, which shapes are derived from.
        others: all other workloads of the judgement.
        numbers: numbers of the source.
        interpreted: calls are interpreted, which takes a thousand times as long.
        device: `cpu` or `cuda`.
        seed: seed of the draw; by default a new one.
    """
    axes, chance = free_axes.drawable_axes(file), random.Random(secrets.randbits(62) if seed is None else seed)
    sizes = {int(number) for number in numbers if number == int(number) and number > 1}
    if not axes or not sizes:
        return []
    definition, drawn, left = file.definition, list[Workload](), input_rules.GUIDED_ELEMENTS
    large = set[Dims]()
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    most = input_rules.NEAR_ELEMENTS_INTERPRETED if interpreted else left
    count = 1 if interpreted else input_rules.GUIDED_SHAPES[device]
    most_of = {} if device == "cpu" and not interpreted else _largest_sizes(file, judged, axes, interpreted)
    targets = list(_list_targets(definition, axes, (*judged, *others), sizes, chance))
    for target in sorted(chance.sample(targets, len(targets)), key=lambda target: target.rank):
        workload = _reach_promised(file, chance.choice(list(judged)), axes, target, chance)
        if workload is None or any(workload.axes[axis] > most_of[axis] for axis in most_of):
            continue
        elements = definition.elements(workload)
        is_first = not drawn or (target.rank == 0 and target.dims not in large)  # each may be what is counted
        is_first = is_first and not (interpreted or file.inputs)  # own inputs are tried here, which takes time
        nbytes = sum(definition.nbytes(spec, workload) for spec in specs)
        fits = nbytes <= input_rules.LARGER_BYTES[device] if is_first else elements <= most
        if not fits or (file.inputs is not None and not free_axes.reference_holds(file, workload, device)):
            continue
        workload = workload.model_copy(update={"name": _name(target, len(drawn))})
        drawn.append(vary_scalars(file, workload, chance))
        if is_first:
            large.add(target.dims)
        else:
            most -= elements
        if len(drawn) == count:
            break
    return drawn


def _largest_sizes(
    file: DefinitionFile, judged: Sequence[Workload], axes: Sequence[str], interpreted: bool
) -> dict[str, int]:
    """Return the largest size of each axis but that of rows."""
    row_axis = None if interpreted else rows.find_row_axis(file)  # it runs the reference
    factor = int(input_rules.LARGER_FACTORS[-1])
    return {axis: factor * max(each.axes[axis] for each in judged) for axis in axes if axis != row_axis}


def _name(target: _GuidedSize, index: int) -> str:
    return f"{GUIDED}-{index}-{'*'.join(target.dims)}-{target.number}"[:80]


def _list_targets(
    definition: Definition, axes: Sequence[str], workloads: Sequence[Workload], numbers: Collection[int],
    chance: random.Random,
) -> Iterator[_GuidedSize]:  # fmt: skip
    """Yield the sizes to draw, with their ranks."""
    for dims in _list_dims(definition, axes):
        sizes = [prod(definition.sizes(workload)[axis] for axis in dims) for workload in workloads]
        for number in numbers:
            beyond = (number + 1, number + chance.randint(2, input_rules.GUIDED_BEYOND))
            far = int(number * chance.uniform(*input_rules.GUIDED_FACTORS))
            rank = 0 if max(sizes) <= number else 1 if min(sizes) > number else 2
            near = [number - 1, number, number + 1][: 2 if rank == 0 else 3]
            if rank == 0:
                yield from (_GuidedSize(0, dims, number, size) for size in (chance.choice(beyond), far))
            yield from (
                _GuidedSize(max(rank, 1), dims, number, size) for size in near if size and size not in sizes
            )


def _list_dims(definition: Definition, axes: Sequence[str]) -> list[Dims]:
    """Return the axes that callers choose, and the axes of each tensor that has one of them among others."""
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    tensors = {
        tuple(axis for axis in spec.shape if isinstance(axis, str)): None
        for spec in specs
        if len(spec.shape) > 1 and all(axis in definition.axes for axis in spec.shape)
    }
    products = [
        dims for dims in tensors if set(dims) & set(axes) and len(dims) > 1 and len(set(dims)) == len(dims)
    ]
    return [*((axis,) for axis in axes), *products]


def _reach_promised(
    file: DefinitionFile, base: Workload, axes: Sequence[str], target: _GuidedSize, chance: random.Random
) -> Workload | None:
    """Return a workload of the target's size, or of a near one on the same side of its number; None where promises
    of callers admit neither."""
    definition, workload = file.definition, _reach(file, base, axes, target, chance)
    if workload is None:
        return None
    workload = fit_to_promises(definition, workload, axes, target.dims)
    size = prod(definition.sizes(workload)[axis] for axis in target.dims)
    is_beside = (size > target.number) == (target.size > target.number)
    return workload if is_beside and definition.has_shapes(workload) else None


def _reach(
    file: DefinitionFile, base: Workload, axes: Sequence[str], target: _GuidedSize, chance: random.Random
) -> Workload | None:
    """Return a workload of the target's size; None if the axes that stay do not admit it."""
    definition = file.definition
    along = chance.choice([axis for axis in target.dims if axis in axes])
    rest = [axis for axis in axes if axis != along]
    if len(target.dims) == 1:
        sizes: Mapping[str, int] = {axis: _draw_beside(base.axes[axis], chance) for axis in rest}
        workload = odd.resize(base, GUIDED, {**sizes, along: target.size})
        room = max(input_rules.GUIDED_ROOM, 3 * target.size)
        return _plain(odd.halve_longest(file, workload, rest, room))
    exact = target.size <= target.number
    others = {axis: definition.sizes(base)[axis] for axis in target.dims if axis != along}
    for axis in set(others) & set(rest):
        limit = max(1, min(odd.draw_near_size(others[axis], chance), target.size))
        fitting = [size for size in range(1, min(limit, input_rules.GUIDED_BEYOND) + 1) if not target.size % size]
        others[axis] = chance.choice(fitting) if exact else limit
    width = prod(others.values())
    if not width or (exact and target.size % width):
        return None
    free = {axis: size for axis, size in others.items() if axis in rest}
    outside = {axis: _draw_beside(base.axes[axis], chance) for axis in rest if axis not in others}
    workload = odd.resize(base, GUIDED, {**outside, **free, along: -(-target.size // width)})
    return _plain(odd.halve_longest(file, workload, list(outside), max(input_rules.GUIDED_ROOM, 4 * target.size)))


def _draw_beside(size: int, chance: random.Random) -> int:
    """Return a size near a judged one, or by chance the same: a path beyond a number may be for it alone."""
    return size if chance.random() < input_rules.KEPT_SIZES else odd.draw_near_size(size, chance)


def _plain(workload: Workload) -> Workload:
    return workload.model_copy(update={"set": "full"})
