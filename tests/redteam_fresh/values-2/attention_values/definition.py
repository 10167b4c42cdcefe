"""attention_values for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(batch, queries, keys, dim):
    return Workload(name=f"{batch}x{queries}x{keys}x{dim}", axes={"batch": batch, "queries": queries, "keys": keys, "dim": dim})


definition = Definition(
    name="attention_values",
    description="probabilities times values times scale, batch by batch",
    op_type="gemm",
    axes={"batch": "heads", "queries": "queries", "keys": "keys", "dim": "head size"},
    inputs={
        "p": TensorSpec(shape=("batch", "queries", "keys")),
        "v": TensorSpec(shape=("batch", "keys", "dim")),
        "scale": ScalarSpec(value=0.5),
    },
    outputs={"y": TensorSpec(shape=("batch", "queries", "dim"))},
    tolerance=Tolerance(reduction="keys"),
    flops="2 * batch * queries * keys * dim",
    workloads=(at(4, 32, 128, 32), at(8, 64, 64, 64)),
)


def inputs(workload, generator, device):
    s = workload.axes
    p = torch.randn(s["batch"], s["queries"], s["keys"], generator=generator, device=device).softmax(-1)
    v = torch.randn(s["batch"], s["keys"], s["dim"], generator=generator, device=device)
    return {"p": p, "v": v}


def reference(p, v, scale):
    return torch.bmm(p, v) * scale


def magnitude(p, v, scale):
    return torch.bmm(p.abs(), v.abs()) * abs(scale)
