"""Helpers of programs that run a version under another tool: its arguments, and the text of its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, TensorSpec, Workload

if TYPE_CHECKING:
    import torch


def run_arguments(
    definition: Definition, workload: Workload, tensors: Mapping[str, torch.Tensor], device: str
) -> list[Any]:
    """Return the arguments of `run`: inputs, scalars, and unwritten outputs if the definition gives them."""
    import torch

    scalars = definition.scalars(workload)
    inputs = [
        tensors[name] if isinstance(spec, TensorSpec) else scalars[name]
        for name, spec in definition.inputs.items()
    ]
    if definition.outputs_are == "returned":
        return inputs
    outputs = [
        torch.empty(
            definition.shape(spec, workload),
            dtype=getattr(torch, definition.dtype(spec, workload)),
            device=device,
        )
        for spec in definition.outputs.values()
    ]
    return inputs + outputs


def describe_exception(error: Exception) -> str:
    """Describe an error of the version in one line of bounded length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
