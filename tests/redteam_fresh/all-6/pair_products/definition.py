"""Products of the rows of two matrices."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="pair_products",
    description="Products of the rows of two matrices",
    axes={"m": "rows of a", "n": "rows of b", "k": "elements of a row"},
    inputs={"a": TensorSpec(shape=("m", "k")), "b": TensorSpec(shape=("n", "k"))},
    outputs={"y": TensorSpec(shape=("m", "n"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * m * n * k",
    workloads=(
        Workload(name="32x32x64", axes={"m": 32, "n": 32, "k": 64}),
        Workload(name="64x48x128", axes={"m": 64, "n": 48, "k": 128}),
        Workload(name="1x1x1", axes={"m": 1, "n": 1, "k": 1}, set="odd"),
        Workload(name="7x5x33", axes={"m": 7, "n": 5, "k": 33}, set="odd"),
    ),
)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b.T


def magnitude(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Terms cancel."""
    return a.abs() @ b.abs().T
