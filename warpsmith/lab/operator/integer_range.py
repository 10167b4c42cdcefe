"""Range of integers without a declared one: which of them the reference computes with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

ANY, POSITIONS = "any", "positions"
"""Ranges of integers that the reference computes with, whichever they are: all numbers of the type where nothing
else is computed, and below one of `input_rules.LARGEST_POSITIONS` beside floating-point numbers."""

_NARROW_BITS = 16
"""Bits of integers that are values rather than positions or indices, all of which callers may use."""


def find_integer_range(file: DefinitionFile) -> str | None:
    """Return `ANY` or `POSITIONS` if the reference computes, on the CPU, with any integers; else the longest axis
    that they may index, or None."""
    import torch

    definition = file.definition
    smallest = min(definition.workloads, key=definition.elements)
    kinds = {
        name: getattr(torch, definition.dtype(spec, smallest)) for name, spec in definition.tensor_inputs.items()
    }
    undeclared = [
        name
        for name, kind in kinds.items()
        if not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
        and ":" not in definition.tensor_inputs[name].distribution
    ]

    def computes(integers: dict[str, torch.Tensor]) -> bool:
        fillers = {name: torch.ones(shape(name)).to(kind) for name, kind in kinds.items()}
        try:
            file.reference(*file.arguments(smallest, fillers | integers))
        except Exception:
            return False
        return True

    def shape(name: str) -> tuple[int, ...]:
        return definition.shape(definition.tensor_inputs[name], smallest)

    limits = {name: torch.iinfo(kinds[name]) for name in undeclared}
    if computes(
        {name: torch.randint(limits[name].min, limits[name].max, shape(name)).to(kinds[name]) for name in limits}
    ):
        tensors = (*definition.tensor_inputs.values(), *definition.outputs.values())
        narrow = all(limits[name].bits <= _NARROW_BITS for name in limits)
        exact = not any(is_floating(definition.dtype(spec, smallest)) for spec in tensors)
        return ANY if narrow or exact else POSITIONS
    sizes = definition.sizes(smallest)
    for axis in sorted(sizes, key=lambda axis: -sizes[axis]):
        last = {name: min(sizes[axis] - 1, limits[name].max) for name in limits}
        if computes({name: torch.full(shape(name), last[name]).to(kinds[name]) for name in limits}):
            return axis
    return None
