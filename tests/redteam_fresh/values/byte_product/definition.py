"""Product of quantised activations (uint8) and weights (int8)."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(m, n, k):
    return Workload(name=f"{m}x{n}x{k}", axes={"m": m, "n": n, "k": k})


definition = Definition(
    name="byte_product",
    description="c = a @ b.T, exactly",
    op_type="gemm",
    axes={"m": "rows of a", "n": "rows of b", "k": "reduction"},
    inputs={
        "a": TensorSpec(shape=("m", "k"), dtype="uint8"),
        "b": TensorSpec(shape=("n", "k"), dtype="int8", role="weight"),
    },
    outputs={"c": TensorSpec(shape=("m", "n"), dtype="int32")},
    flops="2 * m * n * k",
    workloads=(at(128, 128, 256), at(64, 256, 512)),
)


def reference(a, b):
    return a.to(torch.int32) @ b.to(torch.int32).T
