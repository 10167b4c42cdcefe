"""Graphs as Inductor's passes see them, traced without Inductor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx

from warpsmith.program.compiled import cutting
from warpsmith.program.compiled.cutting import Cut, KernelNodes
from warpsmith.program.compiled.region_graph import RegionGraph

aten = torch.ops.aten


def norm(x: Any, residual: Any, weight: Any) -> Any:
    added = aten.add.Tensor(x, residual)
    scale = aten.rsqrt.default(aten.add.Tensor(aten.mean.dim(aten.mul.Tensor(added, added), [-1], True), 1e-6))
    return aten.mul.Tensor(aten.mul.Tensor(added, scale), weight), added


def norm_inputs(rows: int = 6, cols: int = 8, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [
        torch.randn(rows, cols, dtype=dtype),
        torch.randn(rows, cols, dtype=dtype),
        torch.ones(cols, dtype=dtype),
    ]


def trace(function: Callable[..., Any], *inputs: Any) -> Graph:
    mode = FakeTensorMode()
    with mode:
        return make_fx(function)(*[mode.from_tensor(value) for value in inputs]).graph


def calls(graph: Graph, *names: str) -> list[Node]:
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    return [node for node in nodes if not names or str(node.target).split(".")[1] in names]


def kernel(name: str, *nodes: Node) -> KernelNodes:
    return KernelNodes(name, frozenset(node.name for node in nodes))


def cut_all(function: Callable[..., Any], *inputs: Any) -> Cut:
    """Cut the region of a function that is one kernel."""
    graph = trace(function, *inputs)
    (cut,) = cutting.cut_regions(graph, [kernel("k", *calls(graph))])
    return cut


def region_of(function: Callable[..., Any], *inputs: Any) -> RegionGraph:
    region = cut_all(function, *inputs).region
    assert region is not None
    return region
