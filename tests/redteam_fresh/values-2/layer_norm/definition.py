"""layer_norm for an attack on the gate."""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload



def at(batch, seq, cols, dtype="float32", set="representative", eps=1e-5):
    return Workload(name=f"{batch}x{seq}x{cols}-{dtype}", axes={"batch": batch, "seq": seq, "cols": cols}, dtype=dtype,
                    scalars={"eps": eps}, set=set)


definition = Definition(
    name="layer_norm",
    description="y = (x - mean) / sqrt(var + eps) * weight + bias over the last axis",
    op_type="norm",
    axes={"batch": "sequences", "seq": "tokens", "cols": "features"},
    inputs={
        "x": TensorSpec(shape=("batch", "seq", "cols"), layout="any"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("batch", "seq", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * batch * seq * cols",
    workloads=(
        at(16, 64, 128), at(24, 40, 200, "bfloat16"),
        at(1, 1, 1, set="odd"), at(3, 5, 67, set="odd", eps=0.25), at(2, 17, 129, "bfloat16", set="odd"),
        at(1, 7, 1000, set="odd"),
    ),
)


def reference(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def magnitude(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    scale = ((x - mean).square().mean(-1, keepdim=True) + eps).rsqrt()
    size = x.abs().mean(-1, keepdim=True)
    return (x.abs() + size) * scale * weight.abs() + bias.abs()
