"""Ids that came before."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(ids: int) -> Workload:
    return Workload(name=f"{ids}", axes={"ids": ids})


definition = Definition(
    name="repeated_ids",
    description="1 where an equal id came before, else 0",
    op_type="index",
    axes={"ids": "ids"},
    inputs={"id": TensorSpec(shape=("ids",), dtype="int32", distribution="integers:0:8388608")},
    outputs={"repeated": TensorSpec(shape=("ids",), dtype="int32")},
    constraints=("ids <= 4096",),
    flops="ids",
    workloads=(at(2048), at(3000)),
)


def reference(id: torch.Tensor) -> torch.Tensor:
    order = id.argsort(stable=True)
    ordered = id[order]
    again = torch.zeros_like(id)
    again[order[1:]] = (ordered[1:] == ordered[:-1]).to(id.dtype)
    return again
