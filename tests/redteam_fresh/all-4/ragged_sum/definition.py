"""Sums of groups of rows."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="ragged_sum",
    description="y[g] = sum of x[offsets[g]:offsets[g + 1]]",
    axes={"total": "rows", "groups": "groups", "cols": "columns"},
    inputs={
        "x": TensorSpec(shape=("total", "cols")),
        "offsets": TensorSpec(shape=("groups + 1",), dtype="int64", distribution="offsets:total"),
    },
    outputs={"y": TensorSpec(shape=("groups", "cols"))},
    outputs_are="given",
    tolerance=Tolerance(reduction="total"),
    flops="total * cols",
    workloads=(
        Workload(name="4096x64", axes={"total": 4096, "groups": 64, "cols": 64}),
        Workload(name="8192x32", axes={"total": 8192, "groups": 128, "cols": 32}),
    ),
)


def reference(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    sums = torch.cat([x.new_zeros(1, x.shape[1]), x.double().cumsum(0)])
    return (sums[offsets[1:]] - sums[offsets[:-1]]).to(x.dtype)


def magnitude(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return reference(x.abs(), offsets)
