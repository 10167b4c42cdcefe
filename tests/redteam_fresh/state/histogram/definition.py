"""Histogram of bin numbers, as a newcomer writes it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="histogram",
    description="counts[b] = how many of ids are b",
    axes={"n": "values", "bins": 256},
    inputs={"ids": TensorSpec(shape=("n",), dtype="int64", distribution="integers:0:bins")},
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int64")},
    deterministic=True,
    flops="n",
    workloads=(
        Workload(name="100000", axes={"n": 100000}),
        Workload(name="1000000", axes={"n": 1000000}),
    ),
)


def reference(ids: torch.Tensor) -> torch.Tensor:
    return torch.bincount(ids, minlength=256)
