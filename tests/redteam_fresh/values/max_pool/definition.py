"""Maximum of neighbours."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="max_pool",
    description="y[r, i] = max(x[r, 2 i], x[r, 2 i + 1])",
    op_type="pooling",
    axes={"rows": "channels", "cols": "results"},
    inputs={"x": TensorSpec(shape=("rows", "2 * cols"))},
    outputs_are="given",
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(),
    flops="rows * cols",
    workloads=(at(1024, 2048), at(512, 1024)),
)


def reference(x):
    return torch.nn.functional.max_pool1d(x[None], 2)[0]
