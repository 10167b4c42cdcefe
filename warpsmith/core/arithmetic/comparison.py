"""Comparisons of sizes, such as `cols >= k` or `1 <= tokens <= context`, by which callers say what they pass."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple

from warpsmith.core.arithmetic.expression import evaluate

_ORDERS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}


class SizeComparison(NamedTuple):
    """Two sides of which a promise says how they compare."""

    left: str
    """Arithmetic over axes."""
    order: Callable[[float, float], bool]
    """Function that is true of the values of both sides where the promise holds."""
    right: str
    """Arithmetic over axes."""
    names: frozenset[str]
    """Names of both sides."""

    @property
    def has_remainders(self) -> bool:
        """True where a size that is one more may be right again, as multiples are."""
        return "%" in self.left + self.right or "//" in self.left + self.right

    def holds_at(self, sizes: Mapping[str, int]) -> bool:
        """Return True if it holds for sizes by their axes; False where a side is divided by nothing."""
        difference = self.differ(sizes)
        return difference is not None and self.order(difference, 0)

    def differ(self, sizes: Mapping[str, int]) -> float | None:
        """Return the left side less the right one; None where one is divided by nothing.

        Raises:
            ValueError: a side is no arithmetic over the axes.
        """
        try:
            return evaluate(self.left, sizes) - evaluate(self.right, sizes)
        except ValueError as error:
            if isinstance(error.__cause__, ZeroDivisionError):
                return None
            raise


@functools.lru_cache(maxsize=1024)
def select_comparisons(texts: tuple[str, ...], axes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts that are such comparisons, joined by commas or `and`, over axes and numbers alone."""
    names = {text: frozenset[str]().union(*(each.names for each in read_comparisons(text))) for text in texts}
    return tuple(text for text in texts if names[text] and names[text] <= set(axes))


def holds(text: str, sizes: Mapping[str, int]) -> bool:
    """Return True if all comparisons of a text hold for sizes by their axes.

    Raises:
        ValueError: a side of a comparison is no arithmetic over the axes.
    """
    return all(each.holds_at(sizes) for each in read_comparisons(text))


@functools.lru_cache(maxsize=1024)
def read_comparisons(text: str) -> tuple[SizeComparison, ...]:
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
    compares = [part for part in parts if isinstance(part, ast.Compare)]
    orders = {type(order) for part in compares for order in part.ops}
    if len(compares) < len(parts) or not orders <= _ORDERS.keys():
        return ()
    return tuple(
        SizeComparison(ast.unparse(left), _ORDERS[type(order)], ast.unparse(right), _list_names(left, right))
        for part in compares
        for (left, right), order in zip(pairwise((part.left, *part.comparators)), part.ops, strict=True)
    )


def _list_names(*sides: ast.expr) -> frozenset[str]:
    return frozenset(node.id for side in sides for node in ast.walk(side) if isinstance(node, ast.Name))
