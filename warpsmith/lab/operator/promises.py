"""Promises of callers in words: which inputs they are about, and which numbers these hold besides their range."""

from __future__ import annotations

import re

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, TensorSpec, Workload

_ONE_SIGN = r"\b(positive|non-?negative|above (0|zero)|variances?)\b|>"
"""What a description says of an input whose sign callers keep."""

_ENDS = r"\b(ends?|last|up to|total)\b"
"""What a description says of cut points of which the last one is the total."""


def is_promised(definition: Definition, name: str) -> bool:
    """Return True if a promise in words names an input."""
    return any(re.search(rf"\b{name}\b", promise) for promise in definition.constraints)


def find_near_mean(definition: Definition, workload: Workload) -> list[str]:
    """Return the floating-point inputs with a mean and a deviation, whose sign neither a promise nor a description
    keeps."""
    names = []
    for name, spec in definition.tensor_inputs.items():
        kind, *texts = spec.distribution.split(":")
        if kind != "normal" or len(texts) != 2 or not is_floating(definition.dtype(spec, workload)):
            continue
        mean, deviation = (evaluate(text, definition.sizes(workload)) for text in texts)
        is_kept = is_promised(definition, name) or re.search(_ONE_SIGN, spec.description, re.IGNORECASE)
        if mean != 0 and deviation > 0 and not is_kept:
            names.append(name)
    return names


def are_beginnings(definition: Definition, spec: TensorSpec) -> bool:
    """Return True for cut points that need not end at their total: there is one for each result along their axis,
    and neither a promise in words names them nor does a description speak of an end."""
    names = [name for name, each in definition.tensor_inputs.items() if each is spec]
    axis = spec.shape[0] if spec.shape else None
    is_axis = axis in definition.axes and any(axis in output.shape for output in definition.outputs.values())
    is_kept = any(is_promised(definition, name) for name in names)
    return is_axis and not is_kept and not re.search(_ENDS, spec.description, re.IGNORECASE)


def find_sentinels(definition: Definition, workload: Workload) -> dict[str, int]:
    """Return the inputs of integers with the number that each may hold too, by a promise such as
    `label == ignore_index`."""
    sentinels, numbers = {}, definition.scalars(workload)
    for promise in definition.constraints:
        for word, number in re.findall(r"(\w+)(?:\[[^]]*\])?\s*==\s*(\w+)", promise):
            name = word if word in definition.tensor_inputs else f"{word}s"
            spec, value = definition.tensor_inputs.get(name), numbers.get(number)
            if spec and type(value) is int and not is_floating(definition.dtype(spec, workload)):
                sentinels[name] = value
    return sentinels
