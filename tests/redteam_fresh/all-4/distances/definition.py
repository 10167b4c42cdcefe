"""Distances between points."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="distances",
    description="d[i, j] = sqrt(sum((a[i] - b[j])^2))",
    axes={"m": "points", "n": "other points", "dim": "coordinates"},
    inputs={"a": TensorSpec(shape=("m", "dim")), "b": TensorSpec(shape=("n", "dim"))},
    outputs={"d": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="dim"),
    flops="3 * m * n * dim",
    workloads=(
        Workload(name="128x128x64", axes={"m": 128, "n": 128, "dim": 64}),
        Workload(name="96x160x32", axes={"m": 96, "n": 160, "dim": 32}),
    ),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a[:, None] - b).square().sum(-1).sqrt()
