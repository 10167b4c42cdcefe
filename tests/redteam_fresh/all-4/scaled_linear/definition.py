"""A layer whose product is scaled by a number of the call."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="scaled_linear",
    description="y = alpha * x @ w.T",
    op_type="gemm",
    axes={"n": "rows", "out": "outputs", "k": "inputs"},
    inputs={
        "x": TensorSpec(shape=("n", "k")),
        "w": TensorSpec(shape=("out", "k"), role="weight"),
        "alpha": ScalarSpec(value=0.5, between=(0.0, 2.0)),
    },
    outputs={"y": TensorSpec(shape=("n", "out"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * n * out * k",
    workloads=(
        Workload(name="32x256x512", axes={"n": 32, "out": 256, "k": 512}),
        Workload(name="64x128x256", axes={"n": 64, "out": 128, "k": 256}, scalars={"alpha": 0.125}),
        Workload(name="1x1x1", axes={"n": 1, "out": 1, "k": 1}, set="odd"),
        Workload(name="3x65x129", axes={"n": 3, "out": 65, "k": 129}, set="odd"),
    ),
)


def reference(x: torch.Tensor, w: torch.Tensor, alpha: float) -> torch.Tensor:
    return alpha * (x @ w.T)


def magnitude(x: torch.Tensor, w: torch.Tensor, alpha: float) -> torch.Tensor:
    return abs(alpha) * (x.abs() @ w.abs().T)
