"""Sizes that a user asks for: workloads that the definition does not have."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.definition import Definition, Workload
from warpsmith.errors import Misuse

FORM = "AXIS=N[,AXIS=N...][:DTYPE]"
"""Form of a size."""


def parse_size(definition: Definition, judged: Sequence[Workload], text: str) -> Workload:
    """Return the largest judged workload with other sizes, and with another type if the text names one.

    Args:
        definition: the definition, which knows the axes.
        judged: workloads to start from.
        text: a size in `FORM`, such as `cols=129,rows=100000:bfloat16`.

    Raises:
        Misuse: the text is no size, or the definition has no such workload.
    """
    sizes, _, dtype = text.partition(":")
    largest = max(judged, key=definition.elements)
    try:
        pairs = (part.split("=") for part in sizes.split(","))
        axes = {axis.strip(): int(length) for axis, length in pairs}
    except ValueError:
        raise Misuse(f"--size {text}: a size is `{FORM}`, as in `{_example(largest)}`.") from None
    if unknown := next((axis for axis in axes if axis not in largest.axes), None):
        names = ", ".join(largest.axes)
        raise Misuse(f"--size {text}: {definition.name} has no axis `{unknown}` of any size; it has: {names}.")
    if short := next((axis for axis, length in axes.items() if length < 1), None):
        raise Misuse(f"--size {text}: `{short}` is less than 1.")
    if dtype and dtype not in DTYPES:
        raise Misuse(f"--size {text}: there is no type `{dtype}`; there are: {', '.join(DTYPES)}.")
    changes = {
        "name": text[:80],
        "axes": {**largest.axes, **axes},
        "dtype": dtype or largest.dtype,
        "set": "full",
        "weight": None,
    }
    workload = largest.model_copy(update=changes)
    try:
        Definition.model_validate(
            definition.model_copy(update={"workloads": (*definition.workloads, workload)}).model_dump()
        )
    except ValueError as error:
        raise Misuse(f"--size {text}: {definition.name} has no such workload: {error}") from error
    return workload


def _example(workload: Workload) -> str:
    return ",".join(f"{axis}={length - 1}" for axis, length in workload.axes.items())
