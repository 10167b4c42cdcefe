"""A linear penalty by position."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="alibi",
    description="y[t, h] = x[t, h] - slope[h] * position[t]",
    axes={"tokens": "tokens", "heads": "heads"},
    inputs={
        "x": TensorSpec(shape=("tokens", "heads")),
        "position": TensorSpec(shape=("tokens",), dtype="int32"),
        "slope": TensorSpec(shape=("heads",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("tokens", "heads"))},
    flops="2 * tokens * heads",
    workloads=(
        Workload(name="1024x16", axes={"tokens": 1024, "heads": 16}),
        Workload(name="4096x32", axes={"tokens": 4096, "heads": 32}),
    ),
)


def reference(x: torch.Tensor, position: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return x - slope * position[:, None]


def magnitude(x: torch.Tensor, position: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return x.abs() + (slope * position[:, None]).abs()
