"""Logarithm of the sum of two exponentials: what CTC, lattices and running log-sums add with; minus infinity is log 0."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="log_add_exp",
    description="z = log(exp(x) + exp(y)), element by element; minus infinity stands for a probability of zero",
    op_type="elementwise",
    axes={"rows": "sequences", "cols": "states"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "y": TensorSpec(shape=("rows", "cols"))},
    outputs={"z": TensorSpec(shape=("rows", "cols"))},
    flops="4 * rows * cols",
    workloads=(at(256, 512), at(64, 1000), at(1, 1, "odd"), at(3, 17, "odd"), at(33, 130, "odd")),
)


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(x, y)


def magnitude(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The larger one and the logarithm that is added to it may cancel."""
    apart = (x - y).abs().nan_to_num(nan=0.0)
    return torch.maximum(x, y).abs().nan_to_num() + torch.log1p(torch.exp(-apart))
