"""leaky_relu for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(n):
    return Workload(name=f"{n}", axes={"n": n})


definition = Definition(
    name="leaky_relu",
    description="x where it is positive, slope * x elsewhere; any slope",
    op_type="activation",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",)), "slope": ScalarSpec(value=0.01)},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="n",
    workloads=(at(10000), at(65536)),
)


def reference(x, slope):
    return torch.where(x > 0, x, x * slope)
