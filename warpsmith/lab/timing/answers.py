"""Answers of workers, which the grader does not trust: types, shapes and times are checked before use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Status
from warpsmith.lab.workers.side import SideFailed

if TYPE_CHECKING:
    from warpsmith.lab.workers.channel import Message

OutputFacts = dict[str, Any]
"""Type, shape, dtype, strides and address of one output, as a worker reports them."""


def parse_outputs(reported: object, name: str) -> list[OutputFacts]:
    """Return what side `name` reports of its outputs.

    Raises:
        SideFailed: it is no list of objects.
    """
    if not isinstance(reported, list) or not all(isinstance(facts, dict) for facts in reported):
        raise SideFailed(Status.RUNTIME_ERROR, "the worker answered out of turn", name)
    return reported


class TimedBlock(NamedTuple):
    """One timed block of a side."""

    seconds: float
    """Seconds per call, by the clock that the side is timed with."""
    unseen: float
    """Seconds that the grader's clock saw beyond the device's events, including the delivery of one result."""
    host: float = 0.0
    """Seconds per call in which an eager block was issued on a GPU, by the side's word; 0 elsewhere."""


def parse_seconds(answer: Message, name: str) -> float:
    """Return the time that side `name` reports.

    Raises:
        SideFailed: it is no positive, finite number.
    """
    seconds = answer.get("seconds")
    if not isinstance(seconds, float) or not math.isfinite(seconds) or seconds <= 0:
        raise SideFailed(Status.IMPLAUSIBLE_TIME, f"the worker reported the time {seconds!r}", name)
    return seconds


def issue_seconds(answer: Message) -> float:
    """Return the seconds in which a side says that it issued a block's calls; 0 if it does not say."""
    seconds = answer.get("issue")
    return max(seconds, 0.0) if isinstance(seconds, float) and math.isfinite(seconds) else 0.0


def parse_count(answer: Message, name: str) -> int:
    """Return the number of calls that side `name` reports.

    Raises:
        SideFailed: it is no positive integer.
    """
    calls = answer.get("calls")
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise SideFailed(Status.RUNTIME_ERROR, f"the worker reported {calls!r} calls", name)
    return calls


def check_outputs(
    definition: Definition, workload: Workload, outputs: list[OutputFacts], *, trusted: bool = False
) -> None:
    """Check the reported outputs against the definition.

    A `trusted` side, such as a library that is raced, may return tensors that autograd or its own memory still
    holds: they cost the caller nothing here.

    Raises:
        SideFailed: wrong number, type, shape, strides or dtype; or an address is missing.
    """
    if len(outputs) != len(definition.outputs):
        message = f"run returned {len(outputs)} values, not {len(definition.outputs)}"
        raise SideFailed(Status.INCORRECT_SHAPE, message)
    size = 0
    for facts, (name, spec) in zip(outputs, definition.outputs.items(), strict=True):
        _check_output(facts, name, list(definition.shape(spec, workload)), definition.dtype(spec, workload))
        if facts.get("bound_to") and not trusted:
            raise SideFailed(Status.INCORRECT_DTYPE, f"{name} is bound to {facts['bound_to']}, not a plain tensor")
        size += definition.nbytes(spec, workload)
    if definition.outputs_are == "returned" and not trusted:
        _check_storages(outputs, list(definition.outputs), size)


def _check_output(facts: OutputFacts, name: str, shape: list[int], dtype: str) -> None:
    if facts.get("type") != "Tensor":
        raise SideFailed(Status.INCORRECT_DTYPE, f"{name} is a {facts.get('type')}, not a plain torch.Tensor")
    if facts.get("shape") != shape:
        raise SideFailed(Status.INCORRECT_SHAPE, f"{name} has the shape {facts.get('shape')}, not {shape}")
    if facts.get("dtype") != dtype:
        raise SideFailed(Status.INCORRECT_DTYPE, f"{name} is {facts.get('dtype')}, not {dtype}")
    if not _is_contiguous(facts.get("strides"), shape):
        message = f"{name} has the strides {facts.get('strides')}: not contiguous"
        raise SideFailed(Status.INCORRECT_SHAPE, message)
    if not isinstance(facts.get("address"), int):
        raise SideFailed(Status.RUNTIME_ERROR, f"the worker does not report the address of {name}")


def _check_storages(outputs: Sequence[OutputFacts], names: Sequence[str], size: int) -> None:
    """Refuse an output that keeps memory alive which is far larger than all outputs together, in bytes `size`."""
    most = gate_rules.STORAGE_FACTOR * size + gate_rules.STORAGE_BYTES
    for facts, name in zip(outputs, names, strict=True):
        storage = facts.get("storage")
        if not isinstance(storage, int):
            raise SideFailed(Status.RUNTIME_ERROR, f"the worker does not report the memory of {name}")
        if storage > most:
            message = (
                f"{name} keeps {storage} bytes alive, where all outputs have {size}: return memory of its size"
            )
            raise SideFailed(Status.INCORRECT_SHAPE, message)


def _is_contiguous(strides: object, shape: Sequence[int]) -> bool:
    """Return True for the strides of a contiguous tensor.

    Strides along axes of size 1, and those of empty tensors, do not matter.
    """
    if not isinstance(strides, list) or len(strides) != len(shape):
        return False
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != expected and 0 not in shape:
            return False
        expected *= size
    return True
