"""Example inputs on the command line: `--input "x=8,1024:float32"`."""

from __future__ import annotations

import ast
import re

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.core.base import Model
from warpsmith.errors import Misuse

SYNTAX = (
    "`x=8,1024:float32` for a tensor, `ids=4096:int64<50000` for integers below 50000, "
    "`offsets=65:int64~offsets:4096` to name a distribution, and `eps=1e-5` for a number"
)

_TENSOR = re.compile(
    r"\s*(?P<sizes>\d*(?:\s*,\s*\d+)*)\s*:\s*(?P<dtype>\w+)\s*(?:<(?P<high>\d+)|~(?P<form>[\w:.\-]+))?\s*"
)


class FlagTensor(Model):
    """Tensor that a flag describes."""

    name: str
    """Parameter of the function."""
    shape: tuple[int, ...]
    """Sizes in the example."""
    dtype: str
    """PyTorch data type name."""
    distribution: str = ""
    """Distribution of its values; empty for the usual one."""


class FlagValue(Model):
    """Python value that a flag gives: a number, a tuple, a text or None."""

    name: str
    """Parameter of the function."""
    source: str
    """Python literal."""


ExampleFlag = FlagTensor | FlagValue


def parse_example_flag(text: str) -> ExampleFlag:
    """Parse the value of one `--input`.

    Raises:
        Misuse: it has neither form, or an unknown data type.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or not value:
        raise Misuse(f"--input `{text}` has no name and value; write {SYNTAX}.")
    match = _TENSOR.fullmatch(value)
    if match:
        return _parse_tensor(text, name, match)
    try:
        literal = ast.literal_eval({"true": "True", "false": "False", "none": "None"}.get(value.lower(), value))
    except (ValueError, SyntaxError) as error:
        raise Misuse(f"--input `{text}` is neither a tensor nor a Python value; write {SYNTAX}.") from error
    return FlagValue(name=name, source=repr(literal))


def _parse_tensor(text: str, name: str, match: re.Match[str]) -> FlagTensor:
    dtype, high, form = match["dtype"], match["high"], match["form"]
    if dtype not in DTYPES:
        raise Misuse(f"--input `{text}` has the unknown dtype `{dtype}`; known: {', '.join(DTYPES)}.")
    if high is not None and (is_floating(dtype) or dtype == "bool" or int(high) < 1):
        raise Misuse(f"--input `{text}`: `<{high}` bounds integers, and leaves at least one value.")
    shape = tuple(int(size) for size in match["sizes"].split(",") if size.strip())
    return FlagTensor(
        name=name, shape=shape, dtype=dtype, distribution=form or (f"integers:0:{high}" if high else "")
    )
