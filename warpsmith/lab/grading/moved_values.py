"""Outputs that hold nothing but values of the inputs, such as those of a gather: nothing is rounded in them."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs

if TYPE_CHECKING:
    import torch

_SAMPLED, _LEAST = 256, 16
"""Elements of an output that are looked up among the inputs, and how many of them must differ from zero."""


def moved_outputs(file: DefinitionFile) -> frozenset[str]:
    """Return the floating-point outputs whose elements, but zeros, are elements of the inputs.

    It is found by trying at the smallest workload that has enough elements, once for each definition.
    """
    if not file.moved:
        workload = _smallest_workload(file.definition)
        names = _try_workload(file, workload) if workload else ()
        file.moved.update({name: name in names for name in file.definition.outputs})
    return frozenset(name for name, is_moved in file.moved.items() if is_moved)


def _smallest_workload(definition: Definition) -> Workload | None:
    def is_large(workload: Workload) -> bool:
        return all(prod(definition.shape(spec, workload)) >= _SAMPLED for spec in definition.outputs.values())

    return min(filter(is_large, definition.workloads), key=definition.elements, default=None)


def _try_workload(file: DefinitionFile, workload: Workload) -> Collection[str]:
    definition = file.definition
    drawn = Inputs(file, workload, 1, "cpu").draw()
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in drawn.items()}
    arguments = {**definition.scalars(workload), **wide}
    try:
        results = file.outputs(file.reference(*(arguments[name] for name in definition.inputs)))
    except Exception:  # a user's function; whoever needs its results says what is wrong
        return ()
    floats = [tensor for tensor in wide.values() if tensor.is_floating_point()]
    return [
        name
        for name, spec in definition.outputs.items()
        if is_floating(definition.dtype(spec, workload)) and _holds_only(results[name], floats)
    ]


def _holds_only(result: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    import torch

    values = result.flatten()
    places = torch.linspace(0, len(values) - 1, min(_SAMPLED, len(values)), dtype=torch.float64)
    values = values[places.long()]  # float32 rounds the last place of many to one behind it
    values = values[values != 0]
    return len(values) >= _LEAST and all(any(bool((tensor == v).any()) for tensor in tensors) for v in values)
