"""Arithmetic over axis names, as definitions use it for FLOPs, bytes and reduction lengths."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_LARGEST_EXPONENT = 16


def evaluate(expression: str, axes: Mapping[str, int]) -> float:
    """Return the value of `expression`, such as `4 * rows * cols`, for the sizes in `axes`.

    Raises:
        ValueError: the expression contains an unknown name or anything but arithmetic.
    """
    tree = _parse(expression)
    try:
        value = _value(tree, axes, expression)
    except (ArithmeticError, RecursionError, TypeError) as error:
        raise ValueError(f"`{expression}` has no value at {dict(axes)}") from error
    if isinstance(value, complex):
        raise ValueError(f"`{expression}` is not a real number at {dict(axes)}")
    return value


@functools.lru_cache(maxsize=1024)
def _parse(expression: str) -> ast.expr:
    """Parse an expression; cached because a judgement evaluates a few expressions ten thousand times."""
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:  # raised for deeply nested expressions
        raise ValueError(f"`{expression}` is not an arithmetic expression") from error


def _value(node: ast.expr, axes: Mapping[str, int], whole: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in axes:
            return axes[name]
        case ast.Name(id=name):
            raise ValueError(f"`{whole}` uses `{name}`, which is not an axis; the axes are {sorted(axes)}")
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = _value(right, axes, whole)
            if abs(exponent) > _LARGEST_EXPONENT:
                raise ValueError(f"`{whole}` has an exponent above {_LARGEST_EXPONENT}")
            raised: float = _value(left, axes, whole) ** exponent
            return raised
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, axes, whole), _value(right, axes, whole))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, axes, whole)
        case _:
            raise ValueError(f"`{whole}` contains more than arithmetic over axes")
