"""largest of each four neighbours."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="window_max",
    description="largest of each four neighbours",
    op_type="window_max",
    axes={"rows": "tokens", "cols": "windows", "four": 4},
    inputs={"x": TensorSpec(shape=("rows", "cols", "four"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="4 * rows * cols",
    workloads=(
        Workload(name="256x512", axes={"rows": 256, "cols": 512}),
        Workload(name="512x1024", axes={"rows": 512, "cols": 1024}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.amax(-1)
