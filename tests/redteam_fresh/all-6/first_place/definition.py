"""Place at which each id comes first."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="first_place",
    description="Place at which each id comes first",
    axes={"ids": "ids"},
    inputs={"id": TensorSpec(shape=("ids",), dtype="int64", distribution="integers:0:1099511627776")},
    outputs={"place": TensorSpec(shape=("ids",), dtype="int64")},
    flops="ids",
    workloads=(
        Workload(name="1024", axes={"ids": 1024}),
        Workload(name="16384", axes={"ids": 16384}),
        Workload(name="1", axes={"ids": 1}, set="odd"),
        Workload(name="67", axes={"ids": 67}, set="odd"),
        Workload(name="129", axes={"ids": 129}, set="odd"),
    ),
)


def reference(id: torch.Tensor) -> torch.Tensor:
    places = torch.arange(id.shape[0], device=id.device)
    _, group = id.unique(return_inverse=True)
    first = torch.full_like(places, id.shape[0]).scatter_reduce(0, group, places, "amin")
    return first[group]
