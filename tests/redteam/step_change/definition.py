"""Change from step to step: two views of a series, most often one step apart."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="step_change",
    description="y = |a - b|",
    op_type="elementwise",
    axes={"rows": "steps", "cols": "channels"},
    inputs={
        "a": TensorSpec(shape=("rows", "cols"), layout="any"),
        "b": TensorSpec(shape=("rows", "cols"), layout="any"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="rows * cols",
    workloads=(at(512, 256), at(300, 500), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a - b).abs()
