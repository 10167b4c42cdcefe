"""Accepted versions under `torch.compile`: each call is one graph, which a CUDA graph may hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith import project as projects
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.use import operator
from warpsmith.use.arguments import Arguments
from warpsmith.use.choice import BestVersion

DEFINITIONS = sorted((projects.SHIPPED / "kernels").glob("*/definition.py"))


@pytest.fixture(autouse=True)
def fresh_dynamo():
    """Graphs of no other test count toward the limit of recompilations."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def chosen(file: DefinitionFile) -> operator.BestFunction:
    """Return a version that allocates its results and computes nothing, as `best` returns one."""
    arguments = Arguments(file.definition, "cpu", own_inputs=file.inputs is not None)

    def run(*values):
        results = [result.zero_() for result in arguments.allocate(values)]
        return results[0] if len(results) == 1 else tuple(results)

    version = BestVersion.model_construct(
        op=file.definition.name, solution="toy/whole", language="toy", sha256=f"whole{file.sha256}",
        file=Path("v1.toy"), record=Path("record.json"),
    )  # fmt: skip
    return operator._registered_function(version, file, "cpu", operator._Loaded(run, None))


def smallest_arguments(file: DefinitionFile) -> list[object]:
    """Draw the arguments of the workload with the fewest elements."""
    sized = {
        workload.name: sum(torch.Size(file.definition.shape(spec, workload)).numel()
                           for spec in file.definition.tensor_inputs.values())
        for workload in file.definition.workloads
    }  # fmt: skip
    smallest = min(file.definition.workloads, key=lambda workload: sized[workload.name])
    return list(file.arguments(smallest, Inputs(file, smallest, 0, "cpu").draw()))


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.parent.name)
def test_a_call_is_one_graph_with_one_operator(path):
    file = definition_file.load_definition(path)
    function, graphs = chosen(file), []

    def keep(graph, _inputs):
        graphs.append(graph.graph)
        return graph.forward

    def two_layers(*values):
        return function(*values), function(*values)

    arguments = smallest_arguments(file)
    torch.compile(two_layers, fullgraph=True, backend=keep)(*arguments)
    assert len(graphs) == 1
    assert [node.target for node in graphs[0].nodes if node.op == "call_function"].count(function.operator) == 2
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)
    assert unsafe not in function.operator.tags  # Inductor would cut the graph around it


def test_a_size_that_several_axes_share_is_checked_in_the_graph_even_if_it_is_a_symbol():
    file = definition_file.load_definition(projects.SHIPPED / "kernels" / "decode_attention" / "definition.py")
    function = chosen(file)
    arguments = smallest_arguments(file)
    query = torch.cat([arguments[0], arguments[0]], 1)  # of two heads, of which none is the cache's own
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="eager")
    assert compiled(query, *arguments[1:]).shape == query.shape
