"""Task: the values that enter a region while a program's step runs."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from warpsmith.program.compiled import matching, recording
from warpsmith.program.compiled.region_graph import RegionGraph
from warpsmith.program.process import operator_watcher, profile_steps
from warpsmith.program.process.profile_steps import Steps

if TYPE_CHECKING:
    from torch.fx import Graph, Node

    from warpsmith.program.process.loaded_program import LoadedProgram

_NAMESPACE = "warpsmith_observed"


def main(_program: LoadedProgram, *, region: dict[str, Any], steps: int) -> Steps[list[dict[str, Any]]]:
    """Compile the step anew with a probe on each input of a region, run `steps` steps, and list what entered.

    Returns:
        For each sizes of the inputs: `shapes`, and `tensors` with the fields of a `RecordedTensor` that say which
        values it has.
    """
    import torch

    graph_of_region = RegionGraph.model_validate(region)
    parameters = [item for item in gc.get_objects() if issubclass(type(item), torch.nn.Parameter)]
    weights = {item.untyped_storage().data_ptr() for item in parameters if item.device.type != "meta"}
    sites: list[list[list[int]]] = []
    values: dict[tuple[int, int], dict[str, Any]] = {}

    def observe(x: torch.Tensor, site: int, index: int) -> torch.Tensor:
        ranges = operator_watcher.value_range(x)
        ranges["weight"] = x.untyped_storage().data_ptr() in weights
        values[site, index] = _merge_ranges(values.get((site, index)), ranges)
        return x.clone()

    def insert_probes(graph: Graph) -> None:
        for match in matching.find_matches(graph_of_region, graph):
            sites.append([list(tensor.shape) for tensor in match.tensors])
            for index, node in enumerate(match.inputs):
                _insert_probe(graph, node, match.nodes, (len(sites) - 1, index))

    with torch.library._scoped_library(_NAMESPACE, "FRAGMENT") as library:
        library.define("observe(Tensor x, int site, int index) -> Tensor")
        library.impl("observe", observe, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{_NAMESPACE}::observe", lambda x, *_: torch.empty_like(x), lib=library)
        with recording.record_graphs(insert_probes):
            for _ in range(steps):
                yield
            profile_steps.synchronize_device()
    return [
        {"shapes": shapes, "tensors": [values.get((site, index), {}) for index in range(len(shapes))]}
        for site, shapes in enumerate(sites)
    ]


def _insert_probe(graph: Graph, node: Node, users: tuple[Node, ...], site: tuple[int, int]) -> None:
    import torch

    operator = getattr(torch.ops, _NAMESPACE).observe.default
    with graph.inserting_after(node):
        probe = graph.call_function(operator, (node, *site))
    probe.meta = dict(node.meta)
    for user in users:
        user.replace_input_with(node, probe)


def _merge_ranges(earlier: dict[str, Any] | None, ranges: dict[str, Any]) -> dict[str, Any]:
    if earlier is None:
        return ranges
    lows = [item["low"] for item in (earlier, ranges) if item.get("low") is not None]
    highs = [item["high"] for item in (earlier, ranges) if item.get("high") is not None]
    return {
        "low": min(lows, default=None),
        "high": max(highs, default=None),
        "masked": earlier.get("masked", False) or ranges.get("masked", False),
        "weight": earlier["weight"] and ranges["weight"],
    }
