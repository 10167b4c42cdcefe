"""Comparisons of sizes, such as `cols >= k` or `1 <= tokens <= context`, by which callers say what they pass."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

from warpsmith.core.arithmetic.expression import evaluate

_ORDERS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def is_comparison(text: str, axes: Collection[str]) -> bool:
    """Return True if a text is such comparisons, joined by commas or `and`, over axes and numbers alone."""
    parts = _read_parts(text)
    names = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    return bool(names) and names <= set(axes)


def holds(text: str, sizes: Mapping[str, int]) -> bool:
    """Return True if all comparisons of a text hold for sizes by their axes.

    Raises:
        ValueError: a side of a comparison is no arithmetic over the axes.
    """
    return all(
        _ORDERS[type(order)](evaluate(ast.unparse(left), sizes), evaluate(ast.unparse(right), sizes))
        for part in _read_parts(text)
        for (left, right), order in zip(pairwise((part.left, *part.comparators)), part.ops, strict=True)
    )


@functools.lru_cache(maxsize=1024)
def _read_parts(text: str) -> tuple[ast.Compare, ...]:
    """Parse the comparisons of a text; none if anything else is in it."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    match tree:
        case ast.Tuple(elts=parts) | ast.BoolOp(op=ast.And(), values=parts):
            pass
        case part:
            parts = [part]
    compares = tuple(part for part in parts if isinstance(part, ast.Compare))
    orders = {type(order) for part in compares for order in part.ops}
    return compares if len(compares) == len(parts) and orders <= _ORDERS.keys() else ()
