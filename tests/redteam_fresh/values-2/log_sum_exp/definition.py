"""log_sum_exp for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(rows, cols):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="log_sum_exp",
    description="log(sum(exp(x))) of each row",
    op_type="reduction",
    axes={"rows": "tokens", "cols": "keys"},
    inputs={"x": TensorSpec(shape=("rows", "cols"), distribution="normal")},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="3 * rows * cols",
    workloads=(at(64, 1000), at(32, 4096)),
)


def reference(x):
    return torch.logsumexp(x, -1)


def magnitude(x):
    return 4 * x.abs().amax(-1) + 10 if x.numel() else x.sum(-1)
