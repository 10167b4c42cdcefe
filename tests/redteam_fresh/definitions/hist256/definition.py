"""Histogram of 256 bins, as a newcomer writes it: two sizes, a flat distribution."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="hist256",
    description="counts[v] = how often v is in x; values outside of 0 to 255 are not counted",
    op_type="reduction",
    axes={"n": "values", "bins": 256},
    inputs={"x": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:256")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int32")},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 4800000}), Workload(name="large", axes={"n": 6000000})),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    kept = x[(x >= 0) & (x < 256)]
    return torch.bincount(kept, minlength=256).to(torch.int32)
