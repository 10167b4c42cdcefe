"""soft_cap for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(n, dtype):
    return Workload(name=f"{n}-{dtype}", axes={"n": n}, dtype=dtype)


definition = Definition(
    name="soft_cap",
    description="cap * tanh(x / cap); x where cap is 0, which turns it off",
    op_type="activation",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",)), "cap": ScalarSpec(value=30.0, description="0: no cap")},
    outputs={"y": TensorSpec(shape=("n",))},
    flops="4 * n",
    workloads=(at(10000, "float32"), at(65536, "bfloat16")),
)


def reference(x, cap):
    return (cap * torch.tanh(x.float() / cap)).to(x.dtype) if cap else x.clone()
