"""largest element so far in each row."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="running_max",
    description="largest element so far in each row",
    op_type="running_max",
    axes={"rows": "tokens", "cols": "steps"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(
        Workload(name="256x512", axes={"rows": 256, "cols": 512}),
        Workload(name="512x1024", axes={"rows": 512, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.cummax(x, -1).values
