"""Correlation of signals with a filter where it lies within them: an output is shorter than its input."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, n: int, k: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{n}-by-{k}", axes={"rows": rows, "n": n, "k": k}, set=set)


definition = Definition(
    name="short_filter",
    description="y[row, i] = sum(x[row, i + j] * w[j])",
    op_type="conv",
    axes={"rows": "signals", "n": "samples", "k": "length of the filter"},
    inputs={"x": TensorSpec(shape=("rows", "n")), "w": TensorSpec(shape=("k",), role="weight")},
    outputs={"y": TensorSpec(shape=("rows", "n - k + 1"))},
    tolerance=Tolerance(reduction="k"),
    flops="2 * rows * (n - k + 1) * k",
    workloads=(at(64, 400, 5), at(16, 1000, 9), at(1, 1, 1, "odd"), at(3, 17, 4, "odd"), at(5, 67, 7, "odd")),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x.unfold(1, w.shape[0], 1) @ w


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return reference(x.abs(), w.abs())
