"""Batched product."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(b, m, n, k):
    return Workload(name=f"{b}x{m}x{n}x{k}", axes={"b": b, "m": m, "n": n, "k": k})


definition = Definition(
    name="batched_product",
    description="z[i] = x[i] @ y[i]",
    op_type="gemm",
    axes={"b": "batch", "m": "rows", "n": "columns", "k": "reduction"},
    inputs={"x": TensorSpec(shape=("b", "m", "k")), "y": TensorSpec(shape=("b", "k", "n"))},
    outputs={"z": TensorSpec(shape=("b", "m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * b * m * n * k",
    workloads=(at(16, 32, 32, 128), at(4, 16, 16, 4096)),
)


def reference(x, y):
    return x @ y


def magnitude(x, y):
    return x.abs() @ y.abs()
