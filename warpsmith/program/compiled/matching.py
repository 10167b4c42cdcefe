"""Matching: the places in a compiled graph that compute a region, whatever their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpsmith.program.compiled import encoding
from warpsmith.program.compiled.encoding import RegionRefused
from warpsmith.program.compiled.region_graph import RegionGraph, RegionTensor

if TYPE_CHECKING:
    from torch.fx import Graph, Node


@dataclass(frozen=True)
class RegionMatch:
    """A place in a graph that computes a region."""

    inputs: tuple[Node, ...]
    """The nodes that enter it, in the order of the region's inputs."""
    nodes: tuple[Node, ...]
    """Its nodes, in the order of the region's nodes."""
    outputs: tuple[Node, ...]
    """The nodes that leave it, in the order of the region's outputs."""
    tensors: tuple[RegionTensor, ...]
    """The tensors that enter it, as they are there."""


def find_matches(region: RegionGraph, graph: Graph) -> list[RegionMatch]:
    """List the places of a graph that compute a region; no node is in two of them as an output."""
    matcher = _Matcher(region, graph)
    matches: list[RegionMatch] = []
    replaced: set[Node] = set()
    for match in matcher.matches():
        if replaced.isdisjoint(match.outputs) and not _is_circular(match):
            replaced.update(match.outputs)
            matches.append(match)
    return matches


@dataclass(frozen=True)
class _Binding:
    """Nodes of a graph that stand for the inputs and nodes of a region, so far."""

    inputs: dict[int, Node]
    nodes: dict[int, Node]

    def copy(self) -> _Binding:
        return _Binding(dict(self.inputs), dict(self.nodes))


class _Matcher:
    """Matcher of one region in one graph."""

    def __init__(self, region: RegionGraph, graph: Graph) -> None:
        self._region = region
        self._by_target: dict[str, list[Node]] = {}
        self._described: dict[Node, RegionTensor | None] = {}
        for node in graph.nodes:
            if node.op == "call_function":
                self._by_target.setdefault(encoding.target_name(node), []).append(node)

    def matches(self) -> Iterator[RegionMatch]:
        first, *others = self._region.outputs
        for node in self._candidates(first):
            binding = _Binding({}, {})
            if not self._bind_node(first, node, binding):
                continue
            bound = self._bind_outputs(others, binding)
            if bound is not None:
                yield self._match(bound)

    def _bind_outputs(self, others: list[int], binding: _Binding) -> _Binding | None:
        """Bind the remaining outputs; those that share nothing with the others stay free in their place."""
        if not others:
            return binding
        index, *rest = others
        if index in binding.nodes:
            return self._bind_outputs(rest, binding)
        for node in self._candidates(index):
            attempt = binding.copy()
            if self._bind_node(index, node, attempt) and (bound := self._bind_outputs(rest, attempt)) is not None:
                return bound
        return None

    def _candidates(self, index: int) -> list[Node]:
        return self._by_target.get(self._region.nodes[index].target, [])

    def _bind_node(self, index: int, node: Node, binding: _Binding) -> bool:
        """Bind a node of the region and all that it depends on; a failure leaves the binding half done."""
        pending: list[tuple[int, Node]] = [(index, node)]
        while pending:
            index, node = pending.pop()
            if index in binding.nodes:
                if binding.nodes[index] is not node:
                    return False
                continue
            pairs = self._compare(index, node)
            if pairs is None:
                return False
            binding.nodes[index] = node
            for reference, argument in pairs:
                if "node" in reference:
                    pending.append((reference["node"], argument))
                elif not self._bind_input(reference["input"], argument, binding):
                    return False
        return True

    def _bind_input(self, index: int, node: Node, binding: _Binding) -> bool:
        bound = binding.inputs.setdefault(index, node)
        tensor = self._describe(node)
        return bound is node and tensor is not None and tensor.kind == self._region.inputs[index].kind

    def _compare(self, index: int, node: Node) -> list[tuple[dict[str, int], Node]] | None:
        """Return the references of a region's node with the nodes in their place; None if the nodes differ."""
        expected = self._region.nodes[index]
        if node.op != "call_function" or encoding.target_name(node) != expected.target:
            return None
        arguments: list[Node] = []

        def reference(argument: Node) -> dict[str, int]:
            arguments.append(argument)
            return {"argument": len(arguments) - 1}

        try:
            args, kwargs = encoding.encode_arguments(node, reference)
            result = self._describe(node)
        except RegionRefused:
            return None
        if (result and result.kind) != (expected.result and expected.result.kind):
            return None
        pairs: list[tuple[dict[str, int], Node]] = []
        same = len(args) == len(expected.args) and kwargs.keys() == expected.kwargs.keys()
        same = same and all(
            _unify(argument, value, arguments, pairs)
            for argument, value in (
                *zip(expected.args, args, strict=True),
                *((expected.kwargs[name], kwargs[name]) for name in kwargs),
            )
        )
        return pairs if same else None

    def _describe(self, node: Node) -> RegionTensor | None:
        if node not in self._described:
            try:
                self._described[node] = encoding.describe_result(node)
            except RegionRefused:
                self._described[node] = None
        return self._described[node]

    def _match(self, binding: _Binding) -> RegionMatch:
        inputs = tuple(binding.inputs[index] for index in range(len(self._region.inputs)))
        return RegionMatch(
            inputs,
            tuple(binding.nodes[index] for index in range(len(self._region.nodes))),
            tuple(binding.nodes[index] for index in self._region.outputs),
            tuple(tensor for node in inputs if (tensor := self._describe(node)) is not None),
        )


def _unify(expected: Any, value: Any, arguments: list[Node], pairs: list[tuple[dict[str, int], Node]]) -> bool:  # noqa: ANN401
    """Compare two encoded arguments, and add the references of the first with the nodes in their place."""
    if isinstance(expected, dict) and ("node" in expected or "input" in expected):
        if not isinstance(value, dict) or "argument" not in value:
            return False
        pairs.append((expected, arguments[value["argument"]]))
        return True
    if isinstance(expected, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(expected) == len(value)
            and all(_unify(item, other, arguments, pairs) for item, other in zip(expected, value, strict=True))
        )
    return type(expected) is type(value) and bool(expected == value)


def _is_circular(match: RegionMatch) -> bool:
    """Return whether an input depends on an output, so that one call could not compute the region."""
    ordered = match.inputs
    outputs = set(match.outputs)
    inside, visited = set(match.nodes), set[Any]()
    pending = [node for node in ordered if node not in inside]
    while pending:
        node = pending.pop()
        if node in outputs:
            return True
        if node not in visited:
            visited.add(node)
            pending += node.all_input_nodes
    return any(node in inside for node in ordered)
