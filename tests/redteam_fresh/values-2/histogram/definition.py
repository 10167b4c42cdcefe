"""histogram for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(n):
    return Workload(name=f"{n}", axes={"n": n})


definition = Definition(
    name="histogram",
    description="number of elements of each value",
    op_type="histogram",
    axes={"n": "elements", "bins": 256},
    inputs={"x": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:bins")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int64")},
    deterministic=True,
    flops="n",
    workloads=(at(10000), at(16000)),
)


def reference(x):
    return torch.bincount(x, minlength=256)
