"""Messages of edges added up at their nodes, as in a graph network."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(edges: int, nodes: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{edges}x{cols}-to-{nodes}", axes={"edges": edges, "nodes": nodes, "cols": cols}, set=set)


definition = Definition(
    name="scatter_rows",
    description="y[n] = base[n] + the sum of message[e] over the edges with node[e] == n",
    op_type="reduction",
    axes={"edges": "edges", "nodes": "nodes", "cols": "channels"},
    inputs={
        "base": TensorSpec(shape=("nodes", "cols")),
        "message": TensorSpec(shape=("edges", "cols")),
        "node": TensorSpec(shape=("edges",), dtype="int64", distribution="integers:0:nodes"),
    },
    outputs={"y": TensorSpec(shape=("nodes", "cols"))},
    tolerance=Tolerance(reduction="edges"),
    flops="edges * cols",
    workloads=(
        at(8192, 1024, 64), at(5000, 700, 96),
        at(1, 1, 1, "odd"), at(129, 7, 17, "odd"), at(670, 140, 33, "odd"),
    ),
)


def reference(base: torch.Tensor, message: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    return base.index_add(0, node, message)


def magnitude(base: torch.Tensor, message: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    return reference(base.abs(), message.abs(), node)
