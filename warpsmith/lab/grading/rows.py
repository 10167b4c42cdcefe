"""Rows of a call: the reference of a few sampled rows, where that of a whole call takes too long."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from warpsmith.core.definition import TensorSpec, Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import reference_calls
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile, Function
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promised_sizes import fit_to_promises, list_loose_axes
from warpsmith.lab.operator.promises import unbound_axes

if TYPE_CHECKING:
    import torch

Tensors = Mapping[str, "torch.Tensor"]
"""Tensors of a call by name."""

_TRIED, _KEPT = 7, (5, 1, 3)
_OTHER = 4
"""Size of the other free axes while an axis is tried."""
_SMALL = 1 << 16
"""Elements of a call up to which the axes stay as they are."""


def find_row_axis(file: DefinitionFile) -> str | None:
    """Return an axis along which the results of a call are computed row by row; None if there is none.

    It is found by trying, once for each definition: the reference of some rows must be those rows of the whole
    reference.
    """
    return _find_axis(file, (file.reference,))


def find_part_axis(file: DefinitionFile) -> str | None:
    """Return an axis along which the reference and the hooks of its bound are all computed row by row.

    A hook may look at all rows although the reference does not, as one that has a mean of all elements.
    """
    return _find_axis(file, tuple(each for each in (file.reference, file.magnitude, file.extra) if each))


def take_rows(
    tensors: Tensors, specs: Mapping[str, TensorSpec], axis: str, rows: Sequence[int]
) -> dict[str, torch.Tensor]:
    """Return the given rows of the tensors that have the axis, and the others as they are."""
    import torch

    parts = {}
    for name, tensor in tensors.items():
        shape = specs[name].shape
        index = torch.tensor(rows, device=tensor.device)
        parts[name] = tensor.index_select(shape.index(axis), index) if axis in shape else tensor
    return parts


def place_rows(
    tensors: Tensors,
    source: Tensors,
    specs: Mapping[str, TensorSpec],
    axis: str,
    rows: Sequence[int],
    places: Sequence[int],
) -> dict[str, torch.Tensor]:
    """Return the tensors with rows of `source` at the given places; those without the axis are `source`'s."""
    import torch

    placed = {}
    for name, tensor in tensors.items():
        shape = specs[name].shape
        if axis not in shape:
            placed[name] = source[name]
            continue
        dim = shape.index(axis)
        index = {key: torch.tensor(value, device=tensor.device) for key, value in (("from", rows), ("to", places))}
        placed[name] = tensor.clone().index_copy_(dim, index["to"], source[name].index_select(dim, index["from"]))
    return placed


def sample_rows(size: int, elements: int) -> list[int]:
    """Return the first, the last and some random rows of `size`, in order; more of them where a call has few
    elements a row."""
    chance = random.Random(secrets.randbits(62))
    count = max(input_rules.SAMPLED_ROWS, input_rules.SAMPLED_ELEMENTS * size // max(elements, 1))
    some = chance.sample(range(size), min(size, count))
    return sorted({0, size - 1, *some})


def choose_places(size: int, count: int) -> list[int]:
    """Return `count` different places below `size` in random order; the first and the last are among them."""
    chance = random.SystemRandom()
    ends = [*{0, size - 1}][:count]
    others = chance.sample([index for index in range(size) if index not in ends], count - len(ends))
    return chance.sample([*ends, *others], count)


def shorten(workload: Workload, axis: str, length: int) -> Workload:
    """Return the workload with another size of the axis."""
    return workload.model_copy(update={"axes": {**workload.axes, axis: length}})


def _is_plain(file: DefinitionFile, axis: str) -> bool:
    """Return True if the axis is a dimension of every output and of an input, and no other size depends on it."""
    definition = file.definition
    outputs, inputs = definition.outputs.values(), definition.tensor_inputs.values()
    sizes = [size for spec in (*outputs, *inputs) for size in spec.shape if isinstance(size, str)]
    derived = [size for size in sizes if size != axis and axis in re.findall(r"[A-Za-z_]\w*", size)]
    once = all(spec.shape.count(axis) == 1 for spec in outputs) and all(s.shape.count(axis) <= 1 for s in inputs)
    return once and any(axis in spec.shape for spec in inputs) and not derived


def _find_axis(file: DefinitionFile, functions: tuple[Function, ...]) -> str | None:
    definition = file.definition
    if functions not in file.row_axes:
        axes = [name for name, size in definition.axes.items() if isinstance(size, str)]
        if file.inputs is not None:  # it promises how values fit each other, except along this axis
            axes = [definition.drawn_along] if definition.drawn_along else []
        fitting = (
            axis
            for axis in axes
            if _is_plain(file, axis) and all(_computes_rows(file, axis, function) for function in functions)
        )
        file.row_axes[functions] = next(fitting, None)
    return file.row_axes[functions]


def _computes_rows(file: DefinitionFile, axis: str, function: Function) -> bool:
    """Return True if a function of the definition gives some rows alone what it gives them among others.

    This is tried at a small size, where it takes no time: axes that may have any size are short, and the others
    as at the smallest workload. It is no proof for all sizes, and need not be one. A function that is row by row
    there and not at a larger size would choose its operator by the size; sampled rows of an honest version would
    then be called wrong, and no wrong result right, because the declared sizes are judged with all their rows.
    """
    import torch

    definition = file.definition
    smallest = min(definition.workloads, key=lambda each: definition.elements(shorten(each, axis, _TRIED)))
    whole = _shorten_others(file, shorten(smallest, axis, _TRIED), axis)
    part = shorten(whole, axis, len(_KEPT))
    try:
        drawn = Inputs(file, whole, 1, "cpu").draw()
        wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in drawn.items()}
        expected = reference_calls.run_wide(file, function, whole, wide)
        parts = take_rows(wide, definition.tensor_inputs, axis, _KEPT)
        values = reference_calls.run_wide(file, function, part, parts)
        shaped = all(
            tuple(results[name].shape) == definition.shape(spec, at)
            for results, at in ((expected, whole), (values, part))
            for name, spec in definition.outputs.items()
        )
    except (BadDefinition, ValueError):
        return False
    rows = take_rows(expected, definition.outputs, axis, _KEPT) if shaped else {}
    return shaped and all(torch.allclose(values[name], rows[name], rtol=1e-9, equal_nan=True) for name in rows)


def _shorten_others(file: DefinitionFile, workload: Workload, axis: str) -> Workload:
    """Return the workload with the other axes short that callers may give any size, where it is large."""
    if file.inputs is not None or file.definition.elements(workload) <= _SMALL:
        return workload
    free = [name for name in unbound_axes(file.definition) if name != axis]
    short = fit_to_promises(file.definition, _limit(workload, free), free)
    if file.definition.has_shapes(short):
        return short
    return _limit(workload, list_loose_axes(file.definition, free))  # a promise is about the axis that is tried


def _limit(workload: Workload, axes: Iterable[str]) -> Workload:
    return workload.model_copy(
        update={"axes": workload.axes | {axis: min(workload.axes[axis], _OTHER) for axis in axes}}
    )
