"""Conversion to fixed point."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="to_fixed",
    description="q = round(256 * x) to the nearest, halves to even, cut at 2^30",
    axes={"n": "samples"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"q": TensorSpec(shape=("n",), dtype="int32")},
    flops="2 * n",
    workloads=(
        Workload(name="200000", axes={"n": 200000}),
        Workload(name="1000000", axes={"n": 1000000}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (256 * x).clamp(-(2.0**30), 2.0**30).round().int()
