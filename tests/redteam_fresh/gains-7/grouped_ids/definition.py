"""Ids in the order of their groups."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(ids: int) -> Workload:
    return Workload(name=f"{ids}", axes={"ids": ids})


definition = Definition(
    name="grouped_ids",
    description="ids, stably sorted by h(id): eighty times id * 48271 % 2147483647, and then % 4096",
    op_type="index",
    axes={"ids": "ids"},
    inputs={"id": TensorSpec(shape=("ids",), dtype="int32", distribution="integers:0:1048576")},
    outputs={"grouped": TensorSpec(shape=("ids",), dtype="int32")},
    constraints=("ids <= 16384",),
    flops="160 * ids",
    workloads=(at(16384), at(12000)),
)


def reference(id: torch.Tensor) -> torch.Tensor:
    group = id.long()
    for _ in range(80):
        group = group * 48271 % 2147483647
    return id[(group % 4096).argsort(stable=True)]
