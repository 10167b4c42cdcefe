"""Inputs of a FlashInfer-Trace definition that carry structure: offsets, page tables, lengths and scales.

Random integers do not satisfy `total_q == qo_indptr[-1]`. These inputs are drawn anew for every call, so that they
fit the axes of the workload; the values of safetensors files are not used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.interchange.trace_schema import TraceDefinition, TraceTensor

_LAST = r"(\w+)\s*\[\s*-1\s*\](?:\s*\.\s*item\(\))?"
_TOTAL = re.compile(rf"\s*(?:(\w+)\s*==?\s*{_LAST}|{_LAST}\s*==?\s*(\w+))\s*")

_INDEX = re.compile(r"(^|_)(indices|index|ids|idx|page_table|block_table|block_tables)$")
_SCALE = re.compile(r"(^|_)(sm_)?scale$")
_HEAD = re.compile(r"head_dim|head_size|(^|_)d$")


def totals_of_offsets(trace_definition: TraceDefinition) -> dict[str, str]:
    """Return the axis that the last element of each offsets input equals, from constraints `axis == input[-1]`."""
    totals: dict[str, str] = {}
    for constraint in trace_definition.constraints or ():
        match = _TOTAL.fullmatch(constraint)
        if match:
            axis, name = (match[1], match[2]) if match[1] else (match[4], match[3])
            if name in trace_definition.inputs and axis in trace_definition.axes:
                totals[name] = axis
    return totals


def input_distribution(trace_definition: TraceDefinition, name: str) -> str:
    """Return the distribution of an input: `workload` unless its values have to fit the other inputs."""
    tensor = trace_definition.inputs[name]
    if is_floating(tensor.dtype):
        head = _head_axis(trace_definition)
        if tensor.shape == [] and _SCALE.search(name) and head:
            return f"uniform:0.5 / {head} ** 0.5:1.5 / {head} ** 0.5"
        return "workload"
    totals = totals_of_offsets(trace_definition)
    if name in totals:
        return f"offsets:{totals[name]}"
    if name.endswith("indptr") and (axis := _offsets_axis(trace_definition, name)):
        return f"offsets:{axis}"
    if name == "last_page_len" and "page_size" in trace_definition.axes:
        return "integers:1:page_size + 1"
    if _INDEX.search(name) and (axis := _table_axis(trace_definition)):
        return f"integers:0:{axis}"
    return "workload"


def scale_value(trace_definition: TraceDefinition, name: str) -> float | None:
    """Return the usual value of an attention's scale, `1 / sqrt(head_dim)`; None for another number."""
    head = _head_axis(trace_definition)
    size = trace_definition.axes[head].value if head else None
    return float(size**-0.5) if size and _SCALE.search(name) else None


def is_structural(trace_definition: TraceDefinition, name: str) -> bool:
    """Return whether an input is drawn to fit the others."""
    return input_distribution(trace_definition, name) != "workload"


def constrained_sizes(trace_definition: TraceDefinition, sizes: Mapping[str, int]) -> dict[str, int]:
    """Set the sizes of variable axes that a constraint `axis == arithmetic` determines."""
    result = dict(sizes)
    for constraint in trace_definition.constraints or ():
        try:
            tree = ast.parse(constraint, mode="eval").body
            if (
                isinstance(tree, ast.Compare)
                and isinstance(tree.left, ast.Name)
                and isinstance(tree.ops[0], ast.Eq)
            ):
                axis = trace_definition.axes.get(tree.left.id)
                if axis is not None and axis.type == "var":
                    result[tree.left.id] = int(evaluate(ast.unparse(tree.comparators[0]), result))
        except (SyntaxError, ValueError):
            continue  # This constraint is about values, not sizes.
    return result


def offsets_axes(trace_definition: TraceDefinition) -> set[str]:
    """Return the axes along which offsets lie; they are far shorter than what the offsets cut."""
    return {
        axis
        for name, tensor in trace_definition.inputs.items()
        if name.endswith("indptr") or name in totals_of_offsets(trace_definition)
        for axis in tensor.shape or ()
    }


def _offsets_axis(trace_definition: TraceDefinition, name: str) -> str | None:
    """Return the axis that offsets without a constraint cut: `total_q` of `qo_indptr`, `num_kv_indices` of
    `kv_indptr`."""
    stem = name.removesuffix("indptr").strip("_")
    candidates = (f"total_{stem}", f"total_{stem.removesuffix('o')}", f"num_{stem}_indices")
    return next((axis for axis in candidates if axis in trace_definition.axes), None)


def _table_axis(trace_definition: TraceDefinition) -> str | None:
    """Return the axis that indices point along: the first of a cache, or one of pages."""
    for name, tensor in trace_definition.inputs.items():
        if "cache" in name and tensor.shape:
            return tensor.shape[0]
    return next((axis for axis in trace_definition.axes if "pages" in axis), None)


def _head_axis(trace_definition: TraceDefinition) -> str | None:
    return next((n for n, a in trace_definition.axes.items() if _HEAD.search(n) and a.type == "const"), None)


def tensor_shape(trace_definition: TraceDefinition, tensor: TraceTensor) -> tuple[str, ...]:
    """Return a tensor's shape with every computed axis replaced by its expression."""
    return tuple(axis_expression(trace_definition, axis) for axis in tensor.shape or ())


def axis_expression(trace_definition: TraceDefinition, name: str, replacement: str = "{}", depth: int = 0) -> str:
    """Return an axis as arithmetic over the axes that are not computed.

    Args:
        trace_definition: the definition.
        name: the axis.
        replacement: format of the name of an axis that is not computed.
        depth: number of expressions that this one is part of.

    Raises:
        ValueError: expressions refer to each other in a circle, or to an unknown axis.
    """
    axis = trace_definition.axes.get(name)
    if axis is None or depth > len(trace_definition.axes):
        raise ValueError(f"the axis `{name}` is undefined, or its expression refers to itself")
    if axis.type != "expr":
        return replacement.format(name)
    tree = ast.parse(axis.expression or "", mode="eval")
    text = ast.unparse(tree)
    for other in sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}, key=len, reverse=True):
        inner = axis_expression(trace_definition, other, replacement, depth + 1)
        inner = inner if inner == replacement.format(other) else f"({inner})"
        text = re.sub(rf"(?<![\w\"]){other}(?![\w\"])", inner, text)
    return text
