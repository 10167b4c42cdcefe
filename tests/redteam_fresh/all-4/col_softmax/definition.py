"""Softmax over the keys, which are the first axis."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="col_softmax",
    description="y = softmax of x over its first axis; masked scores are minus infinity",
    axes={"keys": "keys", "heads": "heads times queries"},
    inputs={"x": TensorSpec(shape=("keys", "heads"))},
    outputs={"y": TensorSpec(shape=("keys", "heads"))},
    tolerance=Tolerance(reduction="keys"),
    flops="5 * keys * heads",
    workloads=(
        Workload(name="1024x256", axes={"keys": 1024, "heads": 256}),
        Workload(name="512x768", axes={"keys": 512, "heads": 768}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 0)


def extra(x: torch.Tensor) -> torch.Tensor:
    return 4 * (x.amax(0, keepdim=True) - x).nan_to_num(posinf=0.0)
