"""The k largest values of each row, the largest first."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="top_k",
    description="values = the k largest elements of each row of x, the largest first",
    op_type="top_k",
    axes={"rows": "tokens", "cols": "classes", "k": 8},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"values": TensorSpec(shape=("rows", "k"))},
    outputs_are="given",
    tolerance=Tolerance(),
    flops="rows * cols",
    constraints=("cols >= k",),
    workloads=(at(256, 512), at(64, 4096), at(32, 1000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.topk(8, -1).values
