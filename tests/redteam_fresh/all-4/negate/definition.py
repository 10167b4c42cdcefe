"""Negated numbers."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="negate",
    description="y = -x, also of zeros",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(
        Workload(name="200000", axes={"n": 200000}),
        Workload(name="1000000", axes={"n": 1000000}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return -x
