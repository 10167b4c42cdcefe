"""Region: a subgraph of a compiled graph in a form that files hold, with a digest of everything but its sizes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from pydantic import Field

from warpsmith.core.base import Model

DIGITS = 8
"""Hexadecimal digits of a region's digest."""

OWN_SIZES = "own"
"""Value of `sizes` in an argument: the sizes of the node's own result."""

_KINDS = (
    ("quantisation", ("float8", "int8", "quantize")),
    ("loss head", ("logsumexp", "log_softmax", "nll", "log")),
    ("attention", ("softmax", "amax")),
    ("norm", ("rsqrt", "var_mean", "native_layer_norm")),
    ("activation", ("erf", "sigmoid", "tanh", "silu", "gelu", "relu")),
    ("embedding", ("embedding", "index_put", "scatter", "index")),
    ("reduction", ("sum", "mean", "max", "min")),
)
"""Kinds of regions, with parts of the names that only they have; the first kind that fits counts."""

_MOVES = (
    "aten.clone.default", "aten.permute.default", "aten.transpose.int", "aten.expand.default",
    "aten.reshape.default", "aten.select.int", "aten.slice.Tensor", "aten.unsqueeze.default", "aten.squeeze.dim",
    "getitem",
)  # fmt: skip
"""Operators that compute nothing."""

_CUBE = 3
"""Exponent in the derivative of a reciprocal root, which only the backward pass of a norm has."""


class RegionTensor(Model):
    """A tensor that enters a region, or that a node of it returns."""

    shape: tuple[int, ...]
    """Sizes of its dimensions."""
    strides: tuple[int, ...]
    """Strides, in elements."""
    dtype: str
    """PyTorch data type name."""
    device: str
    """`cpu` or `cuda`."""

    @property
    def kind(self) -> tuple[str, int]:
        """Return what the digest covers: data type and number of dimensions."""
        return self.dtype, len(self.shape)


class RegionNode(Model):
    """A call of one operator in a region.

    An argument is a constant, a list, `{"input": 0}` or `{"node": 3}`, `{"sizes": "own"}` for the sizes of the
    result and `{"length": "own"}` for its only one, or a constant that JSON lacks: `{"dtype": "float32"}`,
    `{"device": "cpu"}`, `{"float": "inf"}`.
    """

    target: str
    """The operator: `aten.add.Tensor`, or `getitem` for a part of a list."""
    args: tuple[Any, ...] = ()
    """Positional arguments."""
    kwargs: dict[str, Any] = {}
    """Arguments by name."""
    result: RegionTensor | None
    """The result; null if it is a list of tensors."""


class RegionGraph(Model):
    """A region: its inputs, its nodes in an order that each like region has, and the nodes that leave it."""

    inputs: tuple[RegionTensor, ...]
    """The tensors that enter it."""
    nodes: tuple[RegionNode, ...] = Field(min_length=1)
    """Its calls; each uses only inputs and nodes before it."""
    outputs: tuple[int, ...] = Field(min_length=1)
    """Indices of the nodes whose results leave it."""

    @cached_property
    def digest(self) -> str:
        """Return the digest of operators, edges, constants, data types and numbers of dimensions."""
        parts = (
            [tensor.kind for tensor in self.inputs],
            [(node.target, node.args, node.kwargs, node.result and node.result.kind) for node in self.nodes],
            self.outputs,
        )
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]

    @property
    def results(self) -> tuple[RegionTensor, ...]:
        """Return the tensors that leave it."""
        return tuple(result for index in self.outputs if (result := self.nodes[index].result) is not None)

    @property
    def kind(self) -> str:
        """Return the kind of region in a word: `norm`, `activation`, `loss head`."""
        names = [node.target for node in self.nodes]
        dtypes = {node.result.dtype for node in self.nodes if node.result}
        words = [*(name.partition(".")[2] for name in names), *dtypes]
        if any(node.target == "aten.pow.Tensor_Scalar" and node.args[1] == _CUBE for node in self.nodes):
            return "norm"
        if {"aten.exp.default", "prims.iota.default", "aten.eq.Tensor"} <= set(names):
            return "loss head"  # the derivative of a cross entropy compares each class with the target
        if "aten.exp.default" in names and not any("sum" in name for name in names):
            return "activation"  # decomposed, as a sigmoid is
        for kind, parts in _KINDS:
            if any(word.partition(".")[0].startswith(part) for word in words for part in parts):
                return kind
        if {name for name in names if name not in _MOVES} == set():
            return "copy"
        return "residual" if any("add" in name for name in names) else "elementwise"

    @property
    def description(self) -> str:
        """Return the names of its operators, each once, in order: `add, mean, rsqrt, mul`."""
        return ", ".join(dict.fromkeys(node.target.split(".")[1] for node in self.nodes if "." in node.target))


def references_of(value: Any) -> Iterator[dict[str, int]]:  # noqa: ANN401 - an argument
    """Yield the references to inputs and nodes in an argument, in order."""
    if isinstance(value, dict):
        if "input" in value or "node" in value:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references_of(item)


def map_argument(value: Any, change: Callable[[dict[str, Any]], Any]) -> Any:  # noqa: ANN401 - an argument
    """Return an argument with each of its objects, such as `{"node": 3}`, replaced."""
    if isinstance(value, dict):
        return change(value)
    return [map_argument(item, change) for item in value] if isinstance(value, list | tuple) else value
