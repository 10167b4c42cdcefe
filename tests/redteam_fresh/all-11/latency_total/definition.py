"""Red team's totals of rows of microseconds."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="latency_total",
    description="total of each row, in 64 bits",
    op_type="reduction",
    axes={"rows": "services", "cols": "requests"},
    inputs={
        "x": TensorSpec(
            shape=("rows", "cols"),
            dtype="int32",
            distribution="integers:0:2000000000",
            description="microseconds of a request",
        )
    },
    outputs={"y": TensorSpec(shape=("rows",), dtype="int64")},
    flops="rows * cols",
    workloads=(at(64, 4096), at(512, 1000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1, dtype=torch.int64)
