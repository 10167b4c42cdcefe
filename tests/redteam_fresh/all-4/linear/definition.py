"""A layer with small weights."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="linear",
    description="y = x @ w.T",
    op_type="gemm",
    axes={"n": "rows", "out": "outputs", "k": "inputs"},
    inputs={
        "x": TensorSpec(shape=("n", "k")),
        "w": TensorSpec(shape=("out", "k"), role="weight", distribution="normal:0:0.02"),
    },
    outputs={"y": TensorSpec(shape=("n", "out"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * n * out * k",
    workloads=(
        Workload(name="32x256x512", axes={"n": 32, "out": 256, "k": 512}),
        Workload(name="64x128x256", axes={"n": 64, "out": 128, "k": 256}),
    ),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w.T


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.abs() @ w.abs().T
