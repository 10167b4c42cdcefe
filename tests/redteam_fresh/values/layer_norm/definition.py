"""Residual layer norm: written well, with odd sizes, layouts and a varied epsilon."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(rows, cols, set="representative", eps=1e-5):
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, scalars={"eps": eps}, set=set)


definition = Definition(
    name="layer_norm",
    description="y = (h - mean(h)) / sqrt(var(h) + eps) * weight + bias with h = x + r, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), layout="any"),
        "r": TensorSpec(shape=("rows", "cols"), layout="any"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "bias": TensorSpec(shape=("cols",), role="weight"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    workloads=(
        at(512, 1024), at(300, 768), at(2048, 512),
        at(1, 1, "odd"), at(2, 3, "odd"), at(7, 17, "odd", 0.3), at(129, 8, "odd"), at(33, 1027, "odd"),
    ),
)


def reference(x, r, weight, bias, eps):
    h = x + r
    return torch.nn.functional.layer_norm(h, (h.shape[-1],), weight, bias, eps)


def magnitude(x, r, weight, bias, eps):
    """h - mean(h) cancels."""
    h, size = x + r, x.abs() + r.abs()
    scale = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps)
    return (size + size.mean(-1, keepdim=True)) * scale * weight.abs() + bias.abs()
