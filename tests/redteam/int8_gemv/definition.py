"""Red team's product of int8 weights with a scale for each row and a vector."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="int8_gemv",
    description="y = scale * (W x), with int8 weights and a scale for each row",
    op_type="gemv",
    axes={"rows": "outputs", "cols": "inputs"},
    inputs={
        "w": TensorSpec(shape=("rows", "cols"), dtype="int8", distribution="integers:-128:128", role="weight"),
        "scale": TensorSpec(shape=("rows",), distribution="uniform:0.001:0.02", role="weight"),
        "x": TensorSpec(shape=("cols",)),
    },
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(256, 1024), at(500, 1000)),
)


def reference(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (w.to(x.dtype) @ x) * scale


def magnitude(w: torch.Tensor, scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return (w.to(x.dtype).abs() @ x.abs()) * scale.abs()
