"""Number of edges that are not above a value."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload

definition = Definition(
    name="edges_below",
    description="Number of edges that are not above a value",
    axes={"values": "values", "edges": "edges"},
    inputs={
        "x": TensorSpec(shape=("values",), dtype="float64"),
        "edge": TensorSpec(shape=("edges",), dtype="float64", distribution="uniform:-3:3"),
    },
    outputs={"count": TensorSpec(shape=("values",), dtype="int64")},
    flops="values * edges",
    workloads=(
        Workload(name="1024x16", axes={"values": 1024, "edges": 16}),
        Workload(name="4096x64", axes={"values": 4096, "edges": 64}),
        Workload(name="1x1", axes={"values": 1, "edges": 1}, set="odd"),
        Workload(name="129x7", axes={"values": 129, "edges": 7}, set="odd"),
    ),
)


def reference(x: torch.Tensor, edge: torch.Tensor) -> torch.Tensor:
    return torch.bucketize(x, edge.sort().values, right=True)
