"""Scales the first rows and leaves the others as they are, as a newcomer writes it: outputs given, two sizes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="masked_scale",
    description="y[r] = 2 * x[r] for the rows below count; the other rows of y keep what is in them",
    op_type="other",
    axes={"rows": "slots", "cols": "channels"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "count": TensorSpec(shape=(1,), dtype="int32", distribution="integers:0:rows + 1"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    outputs_are="given",
    flops="rows * cols",
    workloads=(at(1024, 512), at(768, 640)),
)


def reference(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    beyond = torch.arange(x.shape[0], device=x.device) >= count
    return (2 * x).masked_fill(beyond[:, None], float("nan"))
