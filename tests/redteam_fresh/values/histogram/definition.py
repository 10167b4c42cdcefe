"""Histogram of bytes."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(n):
    return Workload(name=f"{n}", axes={"n": n})


definition = Definition(
    name="histogram",
    description="counts[b] = number of elements equal to b",
    axes={"n": "elements", "bins": 256},
    inputs={"x": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:bins")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int32")},
    flops="n",
    workloads=(at(1 << 20), at(300_000)),
)


def reference(x):
    return torch.bincount(x, minlength=256)[:256].to(torch.int32)
