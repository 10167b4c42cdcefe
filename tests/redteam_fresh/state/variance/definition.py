"""Variance of all values, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="variance",
    description="v = mean((x - mean(x))^2) over all of x",
    op_type="reduction",
    axes={"n": "values"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"v": TensorSpec(shape=())},
    tolerance=Tolerance(reduction="n"),
    flops="4 * n",
    workloads=(
        Workload(name="65536", axes={"n": 65536}),
        Workload(name="5000000", axes={"n": 5000000}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.var(unbiased=False)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    return (x * x).mean()
