"""Running sum of integers, such as lengths of documents to offsets."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(n):
    return Workload(name=f"{n}", axes={"n": n})


definition = Definition(
    name="integer_scan",
    description="y[i] = x[0] + ... + x[i] in 64 bits",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",), dtype="int32")},
    outputs={"y": TensorSpec(shape=("n",), dtype="int64")},
    flops="n",
    workloads=(at(1 << 19), at(300_000)),
)


def reference(x):
    return x.to(torch.int64).cumsum(0)
