"""Rows in another order."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="reorder_rows",
    description="y[i] = x[order[i]], where order is a permutation",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "order": TensorSpec(shape=("rows",), dtype="int64")},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="0 * rows",
    workloads=(
        Workload(name="512x256", axes={"rows": 512, "cols": 256}),
        Workload(name="1024x128", axes={"rows": 1024, "cols": 128}),
    ),
)


def inputs(workload, generator, device):
    rows, cols = workload.axes["rows"], workload.axes["cols"]
    return {
        "x": torch.randn(rows, cols, generator=generator, device=device),
        "order": torch.randperm(rows, generator=generator, device=device),
    }


def reference(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return x[order]
