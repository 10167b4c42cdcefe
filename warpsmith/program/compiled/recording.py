"""Recording of the graphs that Inductor compiles, with the kernels that it generates for each.

A pass of Inductor's own sees each graph of the forward and backward passes. Inductor's provenance tracking names
the nodes that each kernel computes. Caches are off meanwhile: code from a cache shows no graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warpsmith.program.compiled import graph_pass
from warpsmith.program.compiled.cutting import KernelNodes

if TYPE_CHECKING:
    from torch.fx import Graph

_EXTERN = ("extern_kernels.", "aten.", "torch.ops.")
"""Beginnings of the names of kernels that Inductor calls and does not generate."""

_NO_CACHE_WARNING = "dynamo_pgo force disabled"
"""Beginning of PyTorch's warning about a cache that is off."""


class RecordedGraph:
    """A graph that Inductor compiled."""

    def __init__(self, graph: Graph, kernels: dict[str, list[str]]) -> None:
        """Keep a copy of a graph; `kernels` fills while its code is generated."""
        self.graph = graph
        """The graph as the pass saw it; its nodes keep their names."""
        self._kernels, self._earlier = kernels, set(kernels)

    @property
    def is_backward(self) -> bool:
        """Return whether it is a backward pass."""
        return any(node.op == "placeholder" and node.name.startswith("tangents") for node in self.graph.nodes)

    def kernels(self, later: RecordedGraph | None) -> list[KernelNodes]:
        """List the generated kernels, without those of graphs before and of `later`, the graph after it."""
        names = [name for name in self._kernels if name not in self._earlier]
        if later is not None and later._kernels is self._kernels:
            names = [name for name in names if name in later._earlier]
        return [
            KernelNodes(name.rpartition(":")[0] or name, frozenset(self._kernels[name]))
            for name in names
            if not name.startswith(_EXTERN)
        ]


@contextmanager
def record_graphs(change: Callable[[Graph], None] | None = None) -> Iterator[list[RecordedGraph]]:
    """Compile everything anew until the block ends, and yield the list that fills with the graphs.

    Args:
        change: called with each graph before its code is generated; it may change the graph.
    """
    import torch
    import torch._inductor.config as options
    import torch._inductor.debug as debug

    graphs: list[RecordedGraph] = []

    def record(graph: Graph) -> None:
        graphs.append(RecordedGraph(copy_graph(graph), debug._inductor_triton_kernel_to_post_grad_node_info))
        if change is not None:
            change(graph)

    patch = {
        graph_pass.PASS_OPTION: graph_pass.joined_pass(record, lambda: None),
        "force_disable_caches": True,
        "trace.provenance_tracking_level": 2,
        "cpp.enable_kernel_profile": True,
    }
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), options.patch(patch):
            warnings.filterwarnings("ignore", message=_NO_CACHE_WARNING)
            yield graphs
    finally:
        torch._dynamo.reset()


def kernels_by_graph(graphs: Sequence[RecordedGraph]) -> list[list[KernelNodes]]:
    """Return the generated kernels of each graph."""
    return [
        recorded.kernels(graphs[index + 1] if index + 1 < len(graphs) else None)
        for index, recorded in enumerate(graphs)
    ]


def copy_graph(graph: Graph) -> Graph:
    """Copy a graph; its nodes keep their names and values."""
    from torch.fx import Graph as EmptyGraph
    from torch.fx import Node

    copied = EmptyGraph()
    nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        nodes[node] = copied.node_copy(node, nodes.__getitem__)
    return copied
