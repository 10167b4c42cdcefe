"""Counts of values."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(n: int, bins: int) -> Workload:
    return Workload(name=f"{n}-in-{bins}", axes={"n": n, "bins": bins})


definition = Definition(
    name="histogram",
    description="counts[b] = number of values that are b; like only has the number of bins",
    op_type="histogram",
    axes={"n": "values", "bins": "bins"},
    inputs={
        "values": TensorSpec(shape=("n",), dtype="int32", distribution="integers:0:bins"),
        "like": TensorSpec(shape=("bins",), dtype="int64"),
    },
    outputs={"counts": TensorSpec(shape=("bins",), dtype="int64")},
    outputs_are="given",
    flops="n",
    workloads=(at(1 << 21, 1024), at(3 << 19, 512)),
)


def reference(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return torch.bincount(values.long(), minlength=like.shape[0])[: like.shape[0]]
