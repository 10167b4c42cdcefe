"""Batched product, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="batched_product",
    description="c[i] = a[i] @ b[i]",
    op_type="gemm",
    axes={"batch": "products", "m": "rows of a", "n": "columns of b", "k": "reduction"},
    inputs={
        "a": TensorSpec(shape=("batch", "m", "k")),
        "b": TensorSpec(shape=("batch", "k", "n")),
    },
    outputs={"c": TensorSpec(shape=("batch", "m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * batch * m * n * k",
    workloads=(
        Workload(name="4x128x128x256", axes={"batch": 4, "m": 128, "n": 128, "k": 256}),
        Workload(name="8x96x96x128", axes={"batch": 8, "m": 96, "n": 96, "k": 128}),
    ),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.abs() @ b.abs()
