"""A weighted sum of two tensors."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="axpby",
    description="y = alpha * x + beta * z",
    axes={"n": "elements"},
    inputs={
        "alpha": ScalarSpec(value=0.5, between=(-4.0, 4.0)),
        "x": TensorSpec(shape=("n",)),
        "beta": ScalarSpec(value=-0.25, between=(-4.0, 4.0)),
        "z": TensorSpec(shape=("n",)),
    },
    outputs={"y": TensorSpec(shape=("n",))},
    flops="3 * n",
    workloads=(
        Workload(name="100000", axes={"n": 100000}),
        Workload(name="1000000", axes={"n": 1000000}, scalars={"alpha": 2.0}),
    ),
)


def reference(alpha: float, x: torch.Tensor, beta: float, z: torch.Tensor) -> torch.Tensor:
    return alpha * x + beta * z


def magnitude(alpha: float, x: torch.Tensor, beta: float, z: torch.Tensor) -> torch.Tensor:
    return (alpha * x).abs() + (beta * z).abs()
