"""A histogram."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="counts",
    description="count[b] = number of elements of x that are b; edges say only how many bins there are",
    axes={"n": "elements", "bins": "bins"},
    inputs={"edges": TensorSpec(shape=("bins",)), "x": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:bins")},
    outputs={"count": TensorSpec(shape=("bins",), dtype="int32")},
    flops="n",
    workloads=(
        Workload(name="20000", axes={"n": 20000, "bins": 64}),
        Workload(name="32768", axes={"n": 32768, "bins": 256}),
    ),
)


def reference(edges: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.bincount(x, minlength=len(edges))[: len(edges)].int()
