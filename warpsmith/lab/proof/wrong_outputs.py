"""Outputs of a mutation: as a kernel would write them, and exactly; and how near they are to the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.correctness import Truth
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.proof.mutations import Mutation

if TYPE_CHECKING:
    import torch


def wrong_outputs(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], mutation: Mutation
) -> dict[str, torch.Tensor] | None:
    """Run a mutation in the reference's own precision; None if the reference refuses what it would read."""
    changed = {name: _changed(mutation.inputs, name, tensor) for name, tensor in inputs.items()}
    try:
        outputs = correctness.reference_outputs(file, _with_scalars(workload, mutation), changed)
    except BadDefinition:
        return None
    return {name: _changed(mutation.outputs, name, tensor) for name, tensor in outputs.items()}


def exact_answer(
    file: DefinitionFile, workload: Workload, inputs: dict[str, torch.Tensor], mutation: Mutation
) -> dict[str, torch.Tensor] | None:
    """Run a mutation in float64; None if the reference refuses what it would read."""
    changed = {name: _changed(mutation.inputs, name, tensor) for name, tensor in inputs.items()}
    try:
        values = correctness.compute_truth(file, _with_scalars(workload, mutation), changed).values
    except BadDefinition:
        return None
    return {name: _changed(mutation.outputs, name, tensor) for name, tensor in values.items()}


def output_passes(truth: Truth, name: str, outputs: dict[str, torch.Tensor]) -> bool:
    """Return True if the gate's grade of one output is PASSED."""
    output, expected = outputs[name], truth.values[name]
    if output.shape != expected.shape:
        return False
    return correctness.grade_outputs(truth, {name: output}).status is Status.PASSED


def error_share(truth: Truth, name: str, output: torch.Tensor) -> float:
    """Return the largest error of an output that passes, as a share of the bound; 0 for integers."""
    bound = truth.bounds[name]
    return largest_share((output.double() - truth.values[name]).abs() / bound) if bound is not None else 0.0


def largest_share(shares: torch.Tensor) -> float:
    """Return the largest finite share; 0 if there is none."""
    return float(shares.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).max()) if shares.numel() else 0.0


def _with_scalars(workload: Workload, mutation: Mutation) -> Workload:
    return workload.model_copy(update={"scalars": {**workload.scalars, **mutation.scalars}})


def _changed(changes: object, name: str, tensor: torch.Tensor) -> torch.Tensor:
    assert isinstance(changes, dict)
    return changes[name](tensor) if name in changes else tensor
