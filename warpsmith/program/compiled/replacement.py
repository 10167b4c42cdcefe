"""Replacement of regions in the graphs that Inductor compiles, each by one call of a kernel.

What Inductor's caches hold depends on the regions that are replaced, so their kernels are in the caches' keys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith.program.compiled import graph_pass, matching
from warpsmith.program.compiled.matching import RegionMatch
from warpsmith.program.compiled.region_graph import RegionGraph, RegionTensor

if TYPE_CHECKING:
    from torch.fx import Graph, Node


@dataclass(frozen=True)
class RegionKernel:
    """A kernel that replaces a region where it accepts the tensors."""

    name: str
    """Name of the definition."""
    region: RegionGraph
    """The region."""
    call: Any
    """PyTorch's operator that calls the kernel, whose name is that of the version."""
    is_covered: Callable[[Sequence[RegionTensor]], bool]
    """Returns whether the kernel was judged at such tensors."""
    input_orders: tuple[tuple[int, ...] | None, ...]
    """Permutation from the region's tensor to the kernel's, for each input."""
    output_orders: tuple[tuple[int, ...] | None, ...]
    """Permutation from the kernel's tensor to the region's, for each output."""


_kernels: dict[str, RegionKernel] = {}
_places: dict[str, int] = {}
_outer: list[Any] = []


def add_kernel(kernel: RegionKernel) -> None:
    """Replace a region in all graphs that are compiled from now on."""
    import torch._inductor.config as options

    if not _outer:
        _outer.append(getattr(options, graph_pass.PASS_OPTION))
        setattr(options, graph_pass.PASS_OPTION, graph_pass.joined_pass(replace_regions, _identity))
    _kernels[kernel.name] = kernel
    _places[kernel.name] = 0


def remove_kernels() -> None:
    """Replace nothing in graphs that are compiled from now on."""
    import torch._inductor.config as options

    _kernels.clear()
    _places.clear()
    if _outer:
        setattr(options, graph_pass.PASS_OPTION, _outer.pop())


def replaced_places() -> dict[str, int]:
    """Return the number of places that each kernel took in graphs compiled in this process."""
    return dict(_places)


def replace_regions(graph: Graph) -> None:
    """Replace each place of a region whose tensors its kernel covers; the others stay as they are."""
    from torch._inductor.pattern_matcher import stable_topological_sort

    changed = False
    for kernel in _kernels.values():
        for match in matching.find_matches(kernel.region, graph):
            if kernel.is_covered(match.tensors):
                _replace_match(graph, kernel, match)
                _places[kernel.name] += 1
                changed = True
        if changed:
            graph.eliminate_dead_code()
            stable_topological_sort(graph)


def _replace_match(graph: Graph, kernel: RegionKernel, match: RegionMatch) -> None:
    """Call the kernel after the last input, and let everything read its results."""
    import torch

    values = [output.meta["val"] for output in match.outputs]
    last = _last_node(graph, match.inputs)
    arguments = []
    for node, order in zip(match.inputs, kernel.input_orders, strict=True):
        if order is not None:
            last = node = _insert_permute(graph, last, node, order)
        arguments.append(node)
    with graph.inserting_after(last):
        call = graph.call_function(kernel.call, tuple(arguments))
    results, last = [call], call
    stored = [
        torch.empty_like(
            value if order is None else value.permute(_inverse(order)), memory_format=torch.contiguous_format
        )
        for value, order in zip(values, kernel.output_orders, strict=True)
    ]
    call.meta["val"] = stored[0] if len(stored) == 1 else tuple(stored)
    if len(match.outputs) > 1:
        results = []
        for index, value in enumerate(stored):
            with graph.inserting_after(last):
                last = graph.call_function(operator.getitem, (call, index))
            last.meta["val"] = value
            results.append(last)
    for output, result, order in zip(match.outputs, results, kernel.output_orders, strict=True):
        if order is not None:
            result = last = _insert_permute(graph, last, result, order)
        for user in list(output.users):
            user.replace_input_with(output, result)


def _insert_permute(graph: Graph, position: Node, node: Node, order: Sequence[int]) -> Node:
    import torch

    with graph.inserting_after(position):
        permuted = graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    permuted.meta["val"] = node.meta["val"].permute(tuple(order))
    return permuted


def _last_node(graph: Graph, nodes: Sequence[Node]) -> Node:
    """Return the node of these that comes last, or the graph's last input."""
    chosen = set(nodes)
    candidates: list[Node] = [node for node in graph.nodes if node in chosen or node.op == "placeholder"]
    return candidates[-1]


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(list(order).index(dimension) for dimension in range(len(order)))


def _identity() -> Any:  # noqa: ANN401 - whatever can be pickled
    """Return what the code of a graph depends on: the regions, the versions of their kernels and this code."""
    from torch._inductor.custom_graph_pass import get_hash_for_files

    folder = Path(__file__).parent
    files = tuple(str(folder / name) for name in ("encoding.py", "matching.py", "replacement.py"))
    kernels = [(name, kernel.region.digest, str(kernel.call)) for name, kernel in sorted(_kernels.items())]
    return get_hash_for_files(files), kernels
