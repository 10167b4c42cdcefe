"""What an expression in the user's files may hold: a tensor, and where; a module; a number that changes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from warpsmith.program.capture.source import Class, Function, Source

Kind = Literal[
    "", "device", "mask", "host", "python", "counter", "module", "optimizer", "scheduler", "scaler", "generator",
    "loader", "object", "place",
]  # fmt: skip
"""Empty: not known. `device`: a tensor on the device; `mask`: one of booleans; `host`: one made on the CPU;
`counter`: a Python number that changes from step to step; `place`: a torch.device;
`object`: of a class of the user's."""

TENSORS = ("device", "mask", "host")
"""Kinds that are tensors."""


class Value(NamedTuple):
    """What an expression holds."""

    kind: Kind = ""
    classes: tuple[Class, ...] = ()
    """Of a module or object: the class that it has, or those that may be inside it."""
    parts: tuple[Value, ...] = ()
    """Of a tuple or list: each element."""
    made: tuple[Source, ast.Call] | None = None
    """Of what a class that is not the user's made: the call."""


UNKNOWN = Value()
PYTHON, COUNTER = Value("python"), Value("counter")
DEVICE, MASK, HOST = Value("device"), Value("mask"), Value("host")


@dataclass(eq=False)
class Scope:
    """Where an expression stands."""

    source: Source
    function: Function | None = None
    names: dict[str, Value] = field(default_factory=dict)


def joined(*values: Value) -> Value:
    """What an operator on these gives."""
    kinds = {value.kind for value in values}
    for kind in ("device", "mask", "host", "counter"):
        if kind in kinds:
            return Value(kind)
    return PYTHON if kinds == {"python"} else UNKNOWN


def at(value: Value, place: tuple[int, ...]) -> Value:
    """The part of a tuple at a place, in tuples in it."""
    for number in place:
        if value.parts:
            value = value.parts[number] if number < len(value.parts) else UNKNOWN
        elif value.kind not in TENSORS:
            return UNKNOWN
    return value
