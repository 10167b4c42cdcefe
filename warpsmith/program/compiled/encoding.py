"""Encoding of PyTorch's graph nodes as nodes of a region, and back."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.program.compiled.region_graph import OWN_SIZES, RegionTensor

if TYPE_CHECKING:
    from torch.fx import Node

_SPACES = ("aten", "prims")
"""Namespaces of PyTorch's own operators."""

_COLLECTIVES = ("_c10d_functional", "c10d", "c10d_functional", "symm_mem")

_RANDOM = ("prims.inductor_random", "prims.inductor_seed", "prims.inductor_lookup_seed", "prims.inductor_randint")

_SIZE_NAMES = ("size", "shape")
"""Names of arguments that hold the sizes of the result."""

_COUNTER = "prims.iota.default"
"""Operator that counts up to its argument `length`."""

_VIEWS_BY_SIZE = ("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default")

RESHAPE = "aten.reshape.default"
"""Name under which all views by sizes count."""


class RegionRefused(Exception):
    """Refusal to make a region of some nodes; the message completes `it ...`."""


def target_name(node: Node) -> str:
    """Return the name of a node's operator: `aten.add.Tensor`, `getitem`; views by sizes have one name."""
    if node.target is operator.getitem:
        return "getitem"
    name = str(node.target)
    return RESHAPE if name in _VIEWS_BY_SIZE else name


def node_refusal(node: Node) -> str:
    """Return why a node cannot be in a region; empty if it can. The text completes `it ...`."""
    import torch

    if node.op != "call_function":
        return "takes part in no call of an operator"
    if node.target is operator.getitem:
        return ""
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return f"contains {node.target}, which is no operator"
    name, space = str(target), target.namespace
    if space in _COLLECTIVES:
        return f"contains the collective {name}"
    if name.startswith(_RANDOM) or torch.Tag.nondeterministic_seeded in target.tags:
        return f"draws random numbers ({name})"
    if space not in _SPACES:
        return f"contains the custom operator {name}"
    if target._schema.is_mutable:
        return f"writes into a tensor ({name})"
    return ""


def describe_result(node: Node) -> RegionTensor | None:
    """Describe the tensor that a node returns; None if it returns a list.

    Raises:
        RegionRefused: its sizes are symbols, or it is no plain tensor of a type that definitions have.
    """
    import torch

    value = node.meta.get("val")
    if isinstance(value, list | tuple):
        return None
    if not isinstance(value, torch.Tensor):
        raise RegionRefused(f"passes a {type(value).__name__} ({node.name})")
    sizes = (*value.shape, *value.stride()) if value.layout == torch.strided else ()
    if any(not isinstance(size, int) for size in sizes):
        raise RegionRefused("has sizes that are symbols (dynamic shapes)")
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout != torch.strided or dtype not in DTYPES:
        raise RegionRefused(f"passes a {value.layout} tensor of {dtype}")
    return RegionTensor(
        shape=tuple(value.shape), strides=tuple(value.stride()), dtype=dtype, device=value.device.type
    )


def encode_arguments(
    node: Node, reference: Callable[[Node], dict[str, int]]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Encode the arguments of a node; `reference` encodes the nodes among them.

    Raises:
        RegionRefused: one is a symbol or no constant that source can write.
    """
    schema = getattr(node.target, "_schema", None)
    names = [item.name for item in schema.arguments] if schema else []
    own = {name for name in names if name in _SIZE_NAMES} if _has_own_sizes(node, schema) else set()

    def encode(name: str, value: Any) -> Any:  # noqa: ANN401
        if name == "length" and target_name(node) == _COUNTER:
            return {"length": OWN_SIZES}
        return {"sizes": OWN_SIZES} if name in own else _encode_value(value, reference)

    args = tuple(encode(names[i] if i < len(names) else "", value) for i, value in enumerate(node.args))
    return args, {name: encode(name, value) for name, value in sorted(node.kwargs.items())}


def _has_own_sizes(node: Node, schema: Any) -> bool:  # noqa: ANN401
    """Return whether an argument of sizes holds those of the result, so that the digest leaves them out."""
    return schema is not None and not isinstance(node.meta.get("val"), list | tuple)


def _encode_value(value: Any, reference: Callable[[Node], dict[str, int]]) -> Any:  # noqa: ANN401
    import torch
    from torch.fx import Node

    if isinstance(value, Node):
        return reference(value)
    if isinstance(value, list | tuple):
        return [_encode_value(item, reference) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for kind in ("dtype", "layout", "memory_format"):
        if isinstance(value, getattr(torch, kind)):
            return {kind: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": value.type}
    raise RegionRefused(f"has a constant that cannot be written: a {type(value).__name__}")
