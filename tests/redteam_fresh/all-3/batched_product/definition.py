"""Products of many matrices."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="batched_product",
    description="c[b] = a[b] @ d[b]",
    op_type="gemm",
    axes={"batch": "products", "m": "rows", "n": "columns", "k": "reduction"},
    inputs={"a": TensorSpec(shape=("batch", "m", "k")), "d": TensorSpec(shape=("batch", "k", "n"))},
    outputs={"c": TensorSpec(shape=("batch", "m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * batch * m * n * k",
    workloads=(
        Workload(name="small", axes={"batch": 4, "m": 64, "n": 64, "k": 64}),
        Workload(name="large", axes={"batch": 3, "m": 96, "n": 128, "k": 160}),
    ),
)


def reference(a: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return a @ d


def magnitude(a: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return a.abs() @ d.abs()
