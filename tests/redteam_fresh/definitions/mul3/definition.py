"""Product of two stacks of matrices in any layout, written well: odd sizes, layouts."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(batch: int, rows: int, cols: int, set: str = "representative") -> Workload:
    axes = {"batch": batch, "rows": rows, "cols": cols}
    return Workload(name=f"{batch}x{rows}x{cols}", axes=axes, set=set)


definition = Definition(
    name="mul3",
    description="y = a * b, element by element, from tensors in any layout",
    op_type="elementwise",
    axes={"batch": "heads", "rows": "rows", "cols": "columns"},
    inputs={
        "a": TensorSpec(shape=("batch", "rows", "cols"), layout="any"),
        "b": TensorSpec(shape=("batch", "rows", "cols"), layout="any"),
    },
    outputs={"y": TensorSpec(shape=("batch", "rows", "cols"))},
    flops="batch * rows * cols",
    workloads=(
        at(4, 512, 768),
        at(6, 500, 500),
        at(1, 1, 1, "odd"),
        at(3, 17, 67, "odd"),
        at(2, 129, 33, "odd"),
        at(5, 1, 127, "odd"),
    ),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b
