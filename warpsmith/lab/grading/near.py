"""Near: what another honest rounding gives. It is no pass; a race times such a peer and marks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.core.definition import Workload
from warpsmith.core.dtype import DTYPES, DType, is_floating
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

UNITS = 4
"""Roundings to the coarsest type that a peer may add on the way: two values stored, each taken up twice."""

MEANING = (
    f"near: rounds otherwise. Beyond the bound that versions are held to, but within {UNITS} roundings to the "
    "coarsest 16-bit or wider type of the operator more, or at the next fp8 code: timed, yet not the same result"
)
"""What pages, tables and plots say of it."""


def widened(file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], truth: Truth) -> Truth:
    """The same truth with bounds that another honest rounding stays within.

    An element's bound grows by `UNITS` unit roundoffs of the coarsest type that an intermediate may be rounded to,
    relative to the reference, or to the definition's `magnitude` where results cancel. An 8-bit result may be the
    next number of its grid instead. Integers stay exact. All elements may be off together: a scale that is rounded
    moves a whole row.

    Args:
        file: the definition.
        workload: the point at hand.
        inputs: of the call, by name.
        truth: of the same call.
    """
    unit, sizes = UNITS * _coarsest(file, workload), _sizes(file, workload, inputs, truth)
    bounds: dict[str, torch.Tensor | None] = {}
    for name, bound in truth.bounds.items():
        dtype = DTYPES[file.definition.dtype(file.definition.outputs[name], workload)]
        if bound is None:
            bounds[name] = None
        elif dtype.bytes == 1:
            bounds[name] = bound + _spacing(truth.values[name], dtype)
        else:
            bounds[name] = bound + unit * sizes[name].abs()
    return replace(truth, bounds=bounds, norms=dict.fromkeys(truth.norms, 1.0))


def _coarsest(file: DefinitionFile, workload: Workload) -> float:
    """Unit roundoff of the coarsest floating type among inputs and outputs; nobody rounds on the way to 8 bits."""
    definition = file.definition
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    names = {definition.dtype(spec, workload) for spec in specs}
    units = [DTYPES[name].unit_roundoff for name in names if is_floating(name) and DTYPES[name].bytes > 1]
    return max(units, default=DTYPES["float32"].unit_roundoff)


def _sizes(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], truth: Truth
) -> dict[str, torch.Tensor]:
    """What a rounding on the way is relative to."""
    if file.magnitude is None:
        return truth.values
    alone = replace(file, reference=file.magnitude, magnitude=None, extra=None)
    return correctness.truth(alone, workload, inputs).values


def _spacing(value: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Distance of the type's numbers around each value."""
    import torch

    exponent = torch.frexp(value.nan_to_num()).exponent  # |value| is below 2**exponent, at half of it or above
    return torch.ldexp(torch.full_like(value, dtype.unit_roundoff), exponent).clamp_(min=dtype.smallest_subnormal)
