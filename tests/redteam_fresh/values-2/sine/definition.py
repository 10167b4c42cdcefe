"""sine for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(n):
    return Workload(name=f"{n}", axes={"n": n})


definition = Definition(
    name="sine",
    description="sine of each element",
    op_type="activation",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="8 * n",
    workloads=(at(10000), at(65536)),
)


def reference(x):
    return x.sin()
