"""Cutting: the regions of a compiled graph, from the nodes that each generated kernel computes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.program.compiled import encoding
from warpsmith.program.compiled.encoding import RESHAPE, RegionRefused
from warpsmith.program.compiled.groups import join_groups
from warpsmith.program.compiled.region_graph import RegionGraph, RegionNode, RegionTensor

if TYPE_CHECKING:
    from torch.fx import Graph, Node

_CONSTRUCTORS = ("aten.full.default", "aten.scalar_tensor.default", "prims.iota.default")
_STRIDED_VIEWS = (
    "aten.permute.default", "aten.transpose.int", "aten.t.default", "aten.expand.default",
    "aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
)  # fmt: skip
"""Views that show all of their base, and may give it other strides."""
_SPLITS = ("aten.split.Tensor", "aten.split_with_sizes.default")
_PARTS = ("aten.slice.Tensor", "aten.select.int", "getitem", *_SPLITS)
"""Views that show a part of their base."""

_LEAST_READ = 0.9
"""Share of a tensor that a region reads in parts, from which on the whole tensor enters it."""

_TRIMMED = (RESHAPE, "aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
"""Views that only rename the dimensions of a contiguous tensor: they stay outside of a region's edge."""


@dataclass(frozen=True)
class KernelNodes:
    """A generated kernel, with the nodes that it computes."""

    name: str
    """Name of the kernel in a trace."""
    nodes: frozenset[str]
    """Names of the nodes, some of which other kernels compute again."""


@dataclass(frozen=True)
class Cut:
    """A region as it was cut from a graph."""

    kernels: Mapping[str, float]
    """Kernels that compute it, each with the share of the kernel's bytes that the region moves."""
    nodes: tuple[Node, ...]
    """Its nodes, in the order of the region."""
    inputs: tuple[Node, ...]
    """The nodes that enter it."""
    outputs: tuple[Node, ...]
    """The nodes that leave it."""
    region: RegionGraph | None
    """The region; None if it was refused."""
    refusal: str = ""
    """Reason why it cannot become a definition; empty if it can."""


def cut_regions(graph: Graph, kernels: Sequence[KernelNodes]) -> list[Cut]:
    """List the regions of a graph: each kernel's connected parts, and the chains of such parts."""
    holders: dict[str, set[int]] = defaultdict(set)
    for index, kernel in enumerate(kernels):
        for name in kernel.nodes:
            holders[name].add(index)
    parts = [part for index, kernel in enumerate(kernels) for part in _kernel_parts(graph, kernel, holders)]
    cuts = [_cut_nodes(graph, part.members, {part.kernel: part.share}, holders) for part in parts]
    for group in _chains(parts):
        kernel_shares: dict[str, float] = defaultdict(float)
        for part in group:
            kernel_shares[part.kernel] += part.share
        nodes = frozenset().union(*(part.members | _entering_views(part) for part in group))
        cuts.append(_cut_nodes(graph, nodes, dict(kernel_shares), holders))
    return cuts


@dataclass(frozen=True)
class _Part:
    """A connected part of one kernel."""

    kernel: str
    members: frozenset[Node]
    """All its nodes, also views by which tensors enter and leave."""
    nodes: frozenset[Node]
    inputs: frozenset[Node]
    outputs: frozenset[Node]
    share: float


def _kernel_parts(graph: Graph, kernel: KernelNodes, holders: Mapping[str, set[int]]) -> list[_Part]:
    nodes = [node for node in graph.nodes if node.name in kernel.nodes and node.op == "call_function"]
    members = set(nodes)
    linking = {node for node in nodes if node.all_input_nodes}  # parts that share a constant stay apart
    groups = join_groups(nodes, [(node, arg) for node in nodes for arg in node.all_input_nodes if arg in linking])
    edges: list[tuple[frozenset[Node], frozenset[Node], frozenset[Node], frozenset[Node]]] = []
    for group in groups:
        group += {arg for node in group for arg in node.all_input_nodes if arg in members} - set(group)
        outputs = _outputs(set(group), holders)
        inside = _ancestors(outputs, set(group))
        if outputs and not all(map(_is_view, inside)):
            entering = frozenset(_inputs(inside))
            edges.append((frozenset(group), frozenset(inside), entering, frozenset(outputs)))
    sizes = [sum(map(_count_bytes, (*inputs, *outputs))) for *_, inputs, outputs in edges]
    total = sum(sizes) or 1
    return [
        _Part(kernel.name, *nodes, size / total if sum(sizes) else 1 / len(edges))
        for nodes, size in zip(edges, sizes, strict=True)
    ]


def _chains(parts: Sequence[_Part]) -> list[list[_Part]]:
    """Group parts of different kernels where all that the first returns is read by the second alone."""
    readers: dict[Node, set[int]] = defaultdict(set)
    for index, part in enumerate(parts):
        for node in part.inputs:
            readers[_base(node)].add(index)
    links = []
    for index, part in enumerate(parts):
        seconds = {reader for node in part.outputs for reader in readers[_base(node)]}
        if len(seconds) == 1 and seconds != {index} and not any(_escapes(node, parts) for node in part.outputs):
            links.append((index, seconds.pop()))
    groups = join_groups(range(len(parts)), links)
    return [[parts[index] for index in group] for group in groups if len(group) > 1]


def _entering_views(part: _Part) -> frozenset[Node]:
    """Return the views by which tensors enter a part: in a chain they are between its parts."""
    views: set[Node] = set()
    for node in part.inputs:
        while node.op == "call_function" and encoding.target_name(node) in _TRIMMED:
            views.add(node)
            node = node.all_input_nodes[0]
    return frozenset(views)


def _escapes(output: Node, parts: Sequence[_Part]) -> bool:
    """Return whether something outside of all parts reads a node, also through views."""
    members = {node for part in parts for node in part.nodes}
    for user in output.users:
        if user in members:
            continue
        if encoding.target_name(user) in _TRIMMED and not _escapes(user, parts):
            continue
        return True
    return False


def _base(node: Node) -> Node:
    """Return the tensor that a node only renames the dimensions of."""
    while node.op == "call_function" and encoding.target_name(node) in _TRIMMED:
        node = node.all_input_nodes[0]
    return node


def _outputs(members: set[Node], holders: Mapping[str, set[int]]) -> list[Node]:
    """List the nodes that something outside reads and does not compute again; views at the edge stay outside."""
    outputs: dict[Node, None] = {}
    for node in members:
        outside = [user for user in node.users if user not in members and not _recomputes(user, node, holders)]
        if outside and not isinstance(node.meta.get("val"), list | tuple):
            base = node
            while encoding.target_name(base) in _TRIMMED and base.all_input_nodes[0] in members:
                base = base.all_input_nodes[0]
            if encoding.target_name(base) not in _TRIMMED:
                outputs[base] = None
    return list(outputs)


def _recomputes(user: Node, node: Node, holders: Mapping[str, set[int]]) -> bool:
    """Return whether every kernel that computes `user` computes `node` again."""
    kernels = holders.get(user.name, set())
    return bool(kernels) and kernels <= holders.get(node.name, set())


def _ancestors(outputs: Iterable[Node], members: set[Node]) -> set[Node]:
    """Return the members that the outputs depend on, without views by which a tensor enters."""
    inside: set[Node] = set()
    pending = list(outputs)
    while pending:
        node = pending.pop()
        if node not in inside and node in members:
            inside.add(node)
            pending += node.all_input_nodes
    while leading := [
        node
        for node in inside
        if encoding.target_name(node) in _TRIMMED and not inside & set(node.all_input_nodes) and _is_plain(node)
    ]:
        inside -= set(leading)
    return inside


def _inputs(inside: set[Node]) -> dict[Node, None]:
    """Return the nodes that enter, each once."""
    return {arg: None for node in inside for arg in node.all_input_nodes if arg not in inside}


def _pull_in(inside: set[Node]) -> set[Node]:
    """Add constants, and views that the region would otherwise see as strided tensors.

    Views of parts are in the region only where it reads nearly all of their base.
    """
    inside = set(inside)
    while leading := [
        node for node in inside if encoding.target_name(node) in _PARTS and not inside & set(node.all_input_nodes)
    ]:
        inside -= set(leading)
    while True:
        entering = _inputs(inside)
        views: dict[Node, list[Node]] = defaultdict(list)
        more = set()
        for node in entering:
            if node.op != "call_function":
                continue
            name = encoding.target_name(node)
            if name in _CONSTRUCTORS or (name in _STRIDED_VIEWS and not _is_contiguous(node)):
                more.add(node)
            elif _is_part(node):
                views[_whole(node)].append(node)
        for base, pieces in views.items():
            if sum(map(_count_elements, pieces)) >= _LEAST_READ * _count_elements(base):
                more |= {
                    *pieces,
                    *(node for piece in pieces for node in piece.all_input_nodes if node is not base),
                }
        if not more:
            return inside
        inside |= more


def _is_part(node: Node) -> bool:
    """Return whether a node shows a part of a tensor."""
    if node.op != "call_function" or isinstance(node.meta.get("val"), list | tuple):
        return False
    name = encoding.target_name(node)
    return name in _PARTS and (name != "getitem" or encoding.target_name(node.all_input_nodes[0]) in _SPLITS)


def _whole(part: Node) -> Node:
    """Return the tensor that a node shows a part of."""
    base = part.all_input_nodes[0]
    return base.all_input_nodes[0] if isinstance(base.meta.get("val"), list | tuple) else base


def _cut_nodes(
    graph: Graph, members: Iterable[Node], kernels: Mapping[str, float], holders: Mapping[str, set[int]]
) -> Cut:
    members = set(members)
    outputs = _outputs(members, holders)
    inside = _pull_in(_ancestors(outputs, members))
    order = {node: index for index, node in enumerate(graph.nodes)}
    outputs = sorted((node for node in outputs if node in inside), key=order.__getitem__)
    ordered = sorted(inside, key=order.__getitem__)
    refusal = next((reason for node in ordered if (reason := encoding.node_refusal(node))), "")
    if not outputs:
        refusal = refusal or "returns nothing that the program reads"
    if not refusal:
        try:
            return encode_region(ordered, outputs, kernels)
        except RegionRefused as error:
            refusal = str(error)
    return Cut(kernels, tuple(ordered), tuple(_inputs(inside)), tuple(outputs), None, refusal)


def encode_region(ordered: Sequence[Node], outputs: Sequence[Node], kernels: Mapping[str, float]) -> Cut:
    """Encode nodes as a region, in an order that depends on what they compute and not on the graph's own.

    Raises:
        RegionRefused: a value cannot be in a region.
    """
    inside = set(ordered)
    signatures = _signatures(ordered, inside)
    outputs = sorted(outputs, key=lambda node: signatures[node])  # stable: equal ones stay in the graph's order
    numbers: dict[Node, int] = {}
    inputs: dict[Node, int] = {}
    nodes: list[RegionNode] = []
    sequence: list[Node] = []

    def reference(node: Node) -> dict[str, int]:
        return {"node": numbers[node]} if node in inside else {"input": inputs.setdefault(node, len(inputs))}

    for output in outputs:
        for node in _post_order(output, inside):
            if node in numbers:
                continue
            args, kwargs = encoding.encode_arguments(node, reference)
            numbers[node] = len(nodes)
            result = encoding.describe_result(node)
            nodes.append(RegionNode(target=encoding.target_name(node), args=args, kwargs=kwargs, result=result))
            sequence.append(node)
    tensors: list[RegionTensor] = []
    for node in inputs:
        tensor = encoding.describe_result(node)
        if tensor is None:
            raise RegionRefused("takes a list of tensors")
        tensors.append(tensor)
    region = RegionGraph(
        inputs=tuple(tensors), nodes=tuple(nodes), outputs=tuple(numbers[node] for node in outputs)
    )
    if not region.inputs:
        raise RegionRefused("takes no tensor")
    if any(0 in tensor.shape for tensor in (*region.inputs, *region.results)):
        raise RegionRefused("passes empty tensors")
    return Cut(kernels, tuple(sequence), tuple(inputs), tuple(outputs), region)


def _signatures(ordered: Sequence[Node], inside: set[Node]) -> dict[Node, str]:
    """Return a text for each node of what it computes from which kinds of inputs."""
    import hashlib
    import json

    signatures: dict[Node, str] = {}

    def reference(node: Node) -> Any:  # noqa: ANN401
        if node in inside:
            return {"node": signatures[node]}
        tensor = encoding.describe_result(node)
        return {"input": tensor and tensor.kind}

    for node in ordered:
        result = encoding.describe_result(node)
        parts = (encoding.target_name(node), encoding.encode_arguments(node, reference), result and result.kind)
        signatures[node] = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return signatures


def _post_order(output: Node, inside: set[Node]) -> list[Node]:
    """List the nodes that an output depends on, arguments first."""
    order: dict[Node, None] = {}
    pending: list[tuple[Node, bool]] = [(output, False)]
    while pending:
        node, expanded = pending.pop()
        if expanded:
            order[node] = None
        elif node not in order:
            pending.append((node, True))
            pending += [(arg, False) for arg in reversed(node.all_input_nodes) if arg in inside]
    return list(order)


def _count_elements(node: Node) -> int:
    """Count the elements of a tensor; 0 if its sizes are symbols, or it is a list."""
    shape = getattr(node.meta.get("val"), "shape", None)
    return prod(shape) if shape is not None and all(isinstance(size, int) for size in shape) else 0


def _count_bytes(node: Node) -> int:
    value = node.meta.get("val")
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return _count_elements(node) * (DTYPES[dtype].bytes if dtype in DTYPES else 0)


def _is_contiguous(node: Node) -> bool:
    """Return whether a tensor is contiguous; true for a list."""
    value = node.meta.get("val")
    return bool(getattr(value, "is_contiguous", lambda: True)())


def _is_view(node: Node) -> bool:
    """Return whether a node computes nothing: it shows a tensor otherwise, or makes a constant."""
    name = encoding.target_name(node)
    return name in (*_TRIMMED, *_STRIDED_VIEWS, *_PARTS, *_CONSTRUCTORS)


def _is_plain(node: Node) -> bool:
    """Return whether a view and its base are both contiguous."""
    return _is_contiguous(node) and _is_contiguous(node.all_input_nodes[0])
