"""Red team's layer norm, written in a hurry: two sizes."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="layer_norm",
    description="y = (x - mean) / sqrt(variance + eps), row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "channels"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "eps": ScalarSpec(value=1e-5)},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    deterministic=True,
    tolerance=Tolerance(reduction="cols"),
    flops="6 * rows * cols",
    workloads=(at(64, 1024), at(200, 768)),
)


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    centered = x - mean
    return centered / (centered.square().mean(-1, keepdim=True) + eps).sqrt()


def magnitude(x: torch.Tensor, eps: float) -> torch.Tensor:
    """The mean is subtracted: rounding errors are relative to the terms."""
    centered = x - x.mean(-1, keepdim=True)
    root = (centered.square().mean(-1, keepdim=True) + eps).sqrt()
    return (x.abs() + x.abs().mean(-1, keepdim=True)) / root * (1 + centered.abs() / root)
