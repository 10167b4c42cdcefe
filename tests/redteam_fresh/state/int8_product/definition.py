"""Product with weights of eight bits and a scale for each column, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="int8_product",
    description="y = (x @ w) * scale",
    op_type="gemm",
    axes={"m": "rows", "n": "columns", "k": "reduction"},
    inputs={
        "x": TensorSpec(shape=("m", "k")),
        "w": TensorSpec(shape=("k", "n"), dtype="int8", distribution="integers:-127:128", role="weight"),
        "scale": TensorSpec(shape=("n",), role="weight"),
    },
    outputs={"y": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * n * k",
    workloads=(
        Workload(name="16x512x512", axes={"m": 16, "n": 512, "k": 512}),
        Workload(name="64x512x1024", axes={"m": 64, "n": 512, "k": 1024}),
    ),
)


def reference(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x @ w.to(x.dtype)) * scale


def magnitude(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x.abs() @ w.to(x.dtype).abs()) * scale.abs()
