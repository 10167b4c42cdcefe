"""Batch norm with running statistics."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(n, c, p):
    return Workload(name=f"{n}x{c}x{p}", axes={"n": n, "c": c, "p": p})


definition = Definition(
    name="batch_norm",
    description="y = (x - mean) / sqrt(var + eps), channel by channel",
    op_type="norm",
    axes={"n": "images", "c": "channels", "p": "pixels"},
    inputs={
        "x": TensorSpec(shape=("n", "c", "p")),
        "mean": TensorSpec(shape=("c",)),
        "var": TensorSpec(shape=("c",), distribution="uniform:0.5:1.5"),
        "eps": ScalarSpec(value=1e-5),
    },
    outputs={"y": TensorSpec(shape=("n", "c", "p"))},
    tolerance=Tolerance(),
    flops="2 * n * c * p",
    workloads=(at(16, 64, 256), at(8, 96, 784)),
)


def reference(x, mean, var, eps):
    return (x - mean[:, None]) * torch.rsqrt(var + eps)[:, None]


def magnitude(x, mean, var, eps):
    return (x.abs() + mean.abs()[:, None]) * torch.rsqrt(var + eps)[:, None]
