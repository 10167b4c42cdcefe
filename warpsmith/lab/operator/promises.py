"""Promises of callers in words: which axes they bind, which inputs they are about, and which numbers these hold
besides their range."""

from __future__ import annotations

import re

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.arithmetic.expression import evaluate
from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab.operator.definition_file import DefinitionFile

_ONE_SIGN = (
    r"\b(positive|non-?negative|above (0|zero)|variances?|deviations?|r?std|rms|scales?|temperatures?"
    r"|inv|inverse|reciprocal|divisors?|denominators?|step sizes?)\b|>"
)
"""Pattern of what a name or a description says of an input whose sign callers keep."""

_OR = r"(or|may be|can be)(\W+(is|are|equal|equals|to|the|be))*"
"""Pattern of the words before a number of the call that an input may hold too."""

_DENIES = re.compile(r"\b(not|never|nor|neither|no)\b")
"""Words of a text that rules a number out."""

_BEGINS, _ENDS = r"\b(begin|start|first)", r"\b(ends?|last|up to|total|cumulative|inclusive|prefix|sums?)\b"
"""Patterns of what a description says of cut points that are beginnings, and of those that end at the total."""

_NUMBERS = r"\b(nan|finite)\b"
"""Pattern of what a promise says of numbers that are not finite."""

_ALL_FINITE = r"\b(is|are|be|all|every|only) finite\b|\bfinite (inputs|numbers|values)\b"
_SOME = r"\b(one|least|some|any|not)\b"
"""Patterns of a promise that numbers are finite, and of what makes it one about some of them."""

_SIZE_NOUNS = r"\b(sizes?|shapes?|dimensions?|ax[ie]s|lengths?)\b"
_ITS_LENGTH = r"\b(zero|no|any|some|own|same|its|their) lengths?\b|\blengths? (of )?(0|zero)\b"
"""Words of a promise that names an input about how much of it something takes, which is no size of a call."""
_SIZE_WORDS = rf"{_SIZE_NOUNS}|\b(multiples?|divisible|divides?|even|odd)\b"
"""Words by which a promise is about sizes, whichever it names."""


def is_promised(definition: Definition, name: str) -> bool:
    """Return True if a promise in words names an input."""
    return any(re.search(rf"\b{name}\b", promise) for promise in definition.constraints)


def mentions_finite(definition: Definition) -> bool:
    """Return True if a promise is about finite numbers, or about NaN."""
    return any(re.search(_NUMBERS, promise, re.IGNORECASE) for promise in definition.constraints)


def promises_finite(definition: Definition) -> bool:
    """Return True if a promise says that numbers are finite, not only one of each row, say."""
    says = (each for each in definition.constraints if re.search(_ALL_FINITE, each))
    return any(not re.search(_SOME, each) for each in says)


def find_near_mean(definition: Definition, workload: Workload) -> list[str]:
    """Return the floating-point inputs with a mean and a deviation, whose sign neither a promise nor a description
    keeps."""
    names = []
    for name, spec in definition.tensor_inputs.items():
        kind, *texts = spec.distribution.split(":")
        if kind != "normal" or len(texts) != 2 or not is_floating(definition.dtype(spec, workload)):
            continue
        mean, deviation = (evaluate(text, definition.sizes(workload)) for text in texts)
        text = f"{name.replace('_', ' ')} {spec.description}"
        if spec.role == "weight" and definition.op_type == "norm":  # a trained factor, whatever it is called
            text = re.sub(r"\bscales?\b", "", text, flags=re.IGNORECASE)
        is_kept = is_promised(definition, name) or re.search(_ONE_SIGN, text, re.IGNORECASE)
        if mean != 0 and deviation > 0 and not is_kept:
            names.append(name)
    return names


def reaches_end(definition: Definition, name: str, end: float) -> bool:
    """Return True if an input's description or a promise says that its values reach the end of its range, as in
    `from 0 to 1` or `x <= 1`: draws of `uniform` stay below it."""
    spec, number = definition.tensor_inputs[name], rf"{re.escape(f'{end:g}')}(\.0+)?(?![\w.])"
    texts = (spec.description, *(each for each in definition.constraints if re.search(rf"\b{name}\b", each)))
    return any(re.search(rf"(\bto|<=|\binclusive,?)\s*{number}|{number}\W*inclusive", text) for text in texts)


def are_beginnings(definition: Definition, spec: TensorSpec) -> bool:
    """Return True for cut points that need not end at their total: there is one for each result along their axis,
    and a description calls them beginnings and speaks of no end. No promise in words names them."""
    names = [name for name, each in definition.tensor_inputs.items() if each is spec]
    axis = spec.shape[0] if spec.shape else None
    is_axis = axis in definition.axes and any(axis in output.shape for output in definition.outputs.values())
    begins, ends = (re.search(pattern, spec.description, re.IGNORECASE) for pattern in (_BEGINS, _ENDS))
    is_kept = any(is_promised(definition, name) for name in names)
    return is_axis and not is_kept and begins is not None and ends is None


def find_sentinels(file: DefinitionFile, workload: Workload) -> dict[str, int]:
    """Return the inputs of integers with the number that each may hold too, by a promise such as
    `label == ignore_index` or `label == -100`, or by one in other words, or a description, if the reference
    computes with it. Where any negative number may be held, it is the least of the type."""
    definition, sentinels = file.definition, {}
    numbers = {name: each for name, each in definition.scalars(workload).items() if type(each) is int}
    for name, spec in definition.tensor_inputs.items():
        if is_floating(definition.dtype(spec, workload)):
            continue
        words = {name, name.removesuffix("s")}
        promises = [each for each in definition.constraints if words.intersection(re.findall(r"\w+", each))]
        texts = (spec.description, *promises)
        written = {text: int(text) for text in re.findall(r"(?<![\w.])-\d+\b(?!\.)", " ".join(texts))}
        for number, value in {**numbers, **written}.items():
            is_equal = any(
                word in words and each == number
                for promise in definition.constraints
                for word, each in re.findall(r"(\w+)(?:\[[^]]*\])?\s*==\s*(-?\w+)", promise)
            )
            is_named = is_equal or any(_admits_number(text, number) for text in texts)
            is_sure = is_equal and number in numbers
            if is_sure or (is_named and _computes_with(file, name, value)):
                sentinels[name] = value
        if name not in sentinels and any(map(_admits_negative, texts)):
            least = _least_integer(definition.dtype(spec, workload))
            if least < 0 and _computes_with(file, name, least):
                sentinels[name] = least
    return sentinels


def _admits_negative(text: str) -> bool:
    """Return True if a text says that something may be negative, whichever number it is."""
    return bool(re.search(r"(?<!non-)\bnegative\b", text, re.IGNORECASE)) and not _DENIES.search(text)


def _least_integer(dtype: str) -> int:
    import torch

    kind: torch.dtype = getattr(torch, dtype)
    return 0 if kind is torch.bool else int(torch.iinfo(kind).min)


def _admits_number(text: str, number: str) -> bool:
    """Return True if a text says that something may be a number of the call, as in `below n, or ignore_index`."""
    admission = re.search(rf"\b{_OR}\W+?{number}\b(?!\W*(times\b|[-+*/<>]))", text)
    return admission is not None and not _DENIES.search(text)


def _computes_with(file: DefinitionFile, name: str, value: int) -> bool:
    """Return True if the reference computes, on the CPU, with a number among the integers of an input."""
    import torch

    definition, specs = file.definition, file.definition.tensor_inputs
    holding = [each for each in definition.workloads if 0 not in definition.shape(specs[name], each)]
    if not holding:
        return False
    smallest, tensors = min(holding, key=definition.elements), {}
    for each, spec in specs.items():
        dtype = definition.dtype(spec, smallest)
        filled = torch.full(definition.shape(spec, smallest), float(is_floating(dtype)))  # any index may be 0
        tensors[each] = filled.to(getattr(torch, dtype))
    try:
        tensors[name].view(-1)[:1] = value
        file.reference(*file.arguments(smallest, tensors))
    except Exception:  # whatever a reference raises there
        return False
    return int(tensors[name].view(-1)[0]) == value


def unbound_axes(definition: Definition) -> list[str]:
    """Return the axes without a promise in words; none where one is about sizes that it does not name.

    A promise that compares sizes binds none: a shape at which it does not hold is not drawn.
    """
    bound: set[str] = set()
    for promise in (each for each in definition.constraints if each not in definition.compared_sizes):
        text = re.sub(rf"\b({'|'.join(map(re.escape, definition.inputs))})\b", "", promise)  # such as `lengths`
        text = text if text == promise else re.sub(_ITS_LENGTH, "", text, flags=re.IGNORECASE)
        about_sizes = re.search(_SIZE_WORDS, text, re.IGNORECASE)
        names, rest = set(re.findall(r"\w+", promise)) & set(definition.axes), ""
        if about_sizes and not names:
            names, rest = _described_axes(definition, promise)
        if about_sizes and (not names or re.search(_SIZE_NOUNS, rest, re.IGNORECASE)):
            return []
        if about_sizes or not set(re.findall(r"\w+", promise)) & set(definition.inputs):
            bound |= names
    return [name for name, size in definition.axes.items() if isinstance(size, str) and name not in bound]


def _described_axes(definition: Definition, promise: str) -> tuple[set[str], str]:
    """Return the axes whose description a promise has, and the rest of it."""
    names = set()
    for axis, description in definition.axes.items():
        words = rf"\b{re.escape(str(description))}\b"
        if isinstance(description, str) and re.search(words, promise, re.IGNORECASE):
            names.add(axis)
            promise = re.sub(words, "", promise, flags=re.IGNORECASE)
    return names, promise
