"""Softmax of scores, some of which are masked with minus infinity."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="causal_softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row; x may be minus infinity where masked",
    op_type="softmax",
    axes={"rows": "queries", "cols": "keys"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
        Workload(name="1x1", axes={"rows": 1, "cols": 1}, set="odd"),
        Workload(name="7x129", axes={"rows": 7, "cols": 129}, set="odd"),
        Workload(name="masked", axes={"rows": 5, "cols": 1000}, distribution="masked", set="odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def extra(x: torch.Tensor) -> torch.Tensor:
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
