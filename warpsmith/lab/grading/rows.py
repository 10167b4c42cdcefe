"""Rows of a call: the reference of a few sampled rows, where that of a whole call takes too long."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from warpsmith.core.definition import TensorSpec, Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

if TYPE_CHECKING:
    import torch

Tensors = Mapping[str, "torch.Tensor"]
"""Tensors of a call by name."""

_TRIED, _KEPT = 7, (5, 1, 3)


def find_row_axis(file: DefinitionFile) -> str | None:
    """Return an axis along which the results of a call are computed row by row; None if there is none.

    It is found by trying: the reference of some rows must be those rows of the whole reference.
    """
    definition = file.definition
    axes = [name for name, size in definition.axes.items() if isinstance(size, str)]
    if file.inputs is not None:  # it promises how values fit each other, except along this axis
        axes = [definition.drawn_along] if definition.drawn_along else []
    return next((axis for axis in axes if _is_plain(file, axis) and _computes_rows(file, axis)), None)


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


def _computes_rows(file: DefinitionFile, axis: str) -> bool:
    import torch

    definition = file.definition
    smallest = min(definition.workloads, key=lambda each: definition.elements(shorten(each, axis, _TRIED)))
    whole, part = shorten(smallest, axis, _TRIED), shorten(smallest, axis, len(_KEPT))
    try:
        drawn = Inputs(file, whole, 1, "cpu").draw()
        expected = correctness.compute_truth(file, whole, drawn).values
        parts = take_rows(drawn, definition.tensor_inputs, axis, _KEPT)
        values = correctness.compute_truth(file, part, parts).values
    except (BadDefinition, ValueError):
        return False
    rows = take_rows(expected, definition.outputs, axis, _KEPT)
    return all(torch.allclose(values[name], rows[name], rtol=1e-9, equal_nan=True) for name in rows)
