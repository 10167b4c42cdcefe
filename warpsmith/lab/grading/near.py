"""Near results: those that another honest rounding gives. They do not pass; a race times such a peer and marks
it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.definition import Workload
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.grading.rounding import number_spacing
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

NEAR_ROUNDINGS = 4
"""Extra roundings to the coarsest type that a peer may do: two values stored, each of them read twice."""

NEAR_MEANING = (
    "near: rounds otherwise. Beyond the bound that versions are held to, but within "
    f"{NEAR_ROUNDINGS} more roundings to the coarsest 16-bit or wider type of the operator, or at the next fp8 "
    "code. It is timed, yet its result is not the same"
)
"""Explanation of the mark on pages, in tables and in plots."""


def widen_bounds(file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], truth: Truth) -> Truth:
    """Return the truth with bounds that another honest rounding stays within.

    An element's bound grows by `NEAR_ROUNDINGS` unit roundoffs of the coarsest type that an intermediate may be
    rounded to, relative to the reference, or to the definition's `magnitude` where results cancel. An 8-bit result
    may be the next number of its grid instead. Integers stay exact. All elements may be off together, because a
    rounded scale moves a whole row.

    Args:
        file: the definition.
        workload: the workload of the call.
        inputs: name to input of the call.
        truth: truth of the same call.
    """
    unit, sizes = NEAR_ROUNDINGS * _coarsest_roundoff(file, workload), _sizes(file, workload, inputs, truth)
    bounds: dict[str, torch.Tensor | None] = {}
    for name, bound in truth.bounds.items():
        dtype = DTYPES[file.definition.dtype(file.definition.outputs[name], workload)]
        if bound is None:
            bounds[name] = None
        elif dtype.bytes == 1:
            bounds[name] = bound + number_spacing(truth.values[name], dtype)
        else:
            bounds[name] = bound + unit * sizes[name].abs()
    return replace(truth, bounds=bounds, norms=dict.fromkeys(truth.norms, 1.0))


def _coarsest_roundoff(file: DefinitionFile, workload: Workload) -> float:
    """Return the unit roundoff of the coarsest floating type among inputs and outputs.

    8-bit types do not count, because nobody rounds intermediates to 8 bits.
    """
    definition = file.definition
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    names = {definition.dtype(spec, workload) for spec in specs}
    units = [DTYPES[name].unit_roundoff for name in names if is_floating(name) and DTYPES[name].bytes > 1]
    return max(units, default=DTYPES["float32"].unit_roundoff)


def _sizes(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], truth: Truth
) -> dict[str, torch.Tensor]:
    """Return the values that the rounding of an intermediate is relative to."""
    if file.magnitude is None:
        return truth.values
    magnitude_only = replace(file, reference=file.magnitude, magnitude=None, extra=None)
    return correctness.compute_truth(magnitude_only, workload, inputs).values
