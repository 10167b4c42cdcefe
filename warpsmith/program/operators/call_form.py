"""Form: calls of an operator that one definition can cover, and the role of each argument in it."""

from __future__ import annotations

import keyword
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from warpsmith.core.arithmetic.dtype import DTYPES, is_floating
from warpsmith.errors import MissingInput, Misuse
from warpsmith.program.operators import layout
from warpsmith.program.operators.models import ArgumentSource, CallArgument, CallSignature, RecordedTensor

_TRAILING_PARAMETER = "normalized_shape"
"""The parameter that repeats the last sizes of the first tensor."""

_CONSTANT_FLOATS = ("exponent", "dropout_p", "p", "alpha", "beta", "ord")
"""Floats that select the computation, and therefore stay constants of the definition."""

MAX_TENSORS = 64
"""Largest number of tensors of a call, results included: a kernel's arguments, 4 KiB on a GPU, hold this many with
their sizes and strides."""

_MAX_NAMED = 3
"""Largest number of tensors of a list whose sizes are in the name of a call."""

_MAX_LISTED = 8

_NAMES = {"self": "x", "input": "x", "mat1": "a", "mat2": "b", "torch": "torch_"}


@dataclass
class FormArgument:
    """One argument in all calls of a form."""

    slot: ArgumentSource
    """Source of the argument in the definition."""
    dtype: str = ""
    """Data type of a tensor, or `workload`."""
    tensors: list[RecordedTensor] = field(default_factory=list)
    """The tensors, call by call."""
    shapes: list[list[int]] = field(default_factory=list)
    """Shapes of the tensor in the definition, call by call."""
    numbers: list[float] = field(default_factory=list)
    """Values of a number, call by call."""
    strided: bool = False
    """True if the tensor has gaps in memory."""

    @property
    def is_tensor(self) -> bool:
        """Return whether the argument is a tensor."""
        return bool(self.tensors)


@dataclass
class CallForm:
    """Calls that differ only in sizes, in numbers and in the workload's dtype."""

    signatures: tuple[CallSignature, ...]
    """The calls, the most time first."""
    arguments: list[FormArgument]
    """Their arguments, in order."""
    dtypes: list[str]
    """Data type of the workload, call by call."""
    outputs: list[str | None]
    """Data type of each result, or `workload`; None if it is undefined."""
    uncovered: tuple[CallSignature, ...] = ()
    """Calls of other forms."""
    other_forms: tuple[tuple[CallSignature, ...], ...] = ()
    """Other forms that `choose_form` can select by name, the most time first."""

    @property
    def results(self) -> list[tuple[bool, tuple[int, ...] | None]]:
        """Return whether each result exists, and the permutation that makes it out of a contiguous tensor."""
        results: list[tuple[bool, tuple[int, ...] | None]] = []
        for output in map(_nonempty, self.signatures[0].outputs):
            permutation = None if output is None else layout.memory_order(output.shape, output.strides)
            results.append((output is not None, None if permutation is None else tuple(permutation)))
        return results

    def call(self, index: int) -> list[dict[str, Any]]:
        """Return one call in the form that the task `operator_axes` takes."""
        return [
            {
                "element": argument.slot.element,
                **self._value(argument, self.signatures[index].arguments[position], index),
            }
            for position, argument in enumerate(self.arguments)
        ]

    def _value(self, argument: FormArgument, call_argument: CallArgument, index: int) -> dict[str, Any]:
        if not argument.is_tensor:
            return {"source": call_argument.source, "trailing": argument.slot.trailing}
        tensor = argument.tensors[index]
        return {
            "shape": argument.shapes[index],
            "order": argument.slot.order,
            "dtype": tensor.dtype,
            "device": tensor.device,
        }


def choose_form(operator: str, signatures: Sequence[CallSignature], like: str = "") -> CallForm:
    """Choose the form of an operator's calls that takes the most time, of those with a call whose name has `like`.

    Raises:
        Misuse: the calls cannot become a definition.
        MissingInput: no call matches `like`.
    """
    by_form: dict[tuple[object, ...], list[CallSignature]] = defaultdict(list)
    for signature in _usable_calls(operator, signatures):
        by_form[_form_key(signature)].append(signature)
    forms = sorted(by_form.values(), key=lambda group: -sum(item.seconds for item in group))
    calls = _select_form(operator, forms, like)
    uncovered = tuple(item for item in signatures if item not in calls)
    _refuse_form(operator, calls[0])
    first_by_name = {call_name(item): group for group in reversed(forms) for item in group}
    return CallForm(
        tuple(calls),
        _form_arguments(calls),
        [_workload_dtype(item) for item in calls],
        [
            None if item is None else _definition_dtype(item.dtype, calls[0])
            for item in map(_nonempty, calls[0].outputs)
        ],
        uncovered,
        tuple(tuple(item) for item in forms if item is not calls and first_by_name[call_name(item[0])] is item),
    )


def _usable_calls(operator: str, signatures: Sequence[CallSignature]) -> list[CallSignature]:
    """List the calls whose arguments a definition can name."""
    with_tensors = [call for call in signatures if any(argument.tensor for argument in call.arguments)]
    if not with_tensors:
        raise Misuse(
            f"{operator} cannot become a definition: the program passes no tensor, or a value that cannot "
            "be written as source, such as a sparse tensor."
        )
    usable = [call for call in with_tensors if _count_tensors(call) <= MAX_TENSORS]
    if not usable:
        least = min(map(_count_tensors, with_tensors))
        raise Misuse(
            f"{operator} cannot become a definition: a call passes and returns at least {least} tensors, and a "
            f"definition names {MAX_TENSORS} at most{alternative_hint(operator)}."
        )
    return usable


def _select_form(operator: str, forms: Sequence[list[CallSignature]], like: str) -> list[CallSignature]:
    """Return the first form with a call of that name, or else with a call whose name contains it."""
    for group in forms:
        if any(like == call_name(call) for call in group):
            return group
    for group in forms:
        if any(like in call_name(call) for call in group):
            return group
    names = ", ".join(list(dict.fromkeys(call_name(group[0]) for group in forms))[:_MAX_LISTED])
    raise MissingInput(f"No call of {operator} matches `{like}`; choose one of {names}.")


def alternative_hint(operator: str) -> str:
    """Return a hint for an operator that cannot become a definition; empty if there is none."""
    if not operator.startswith("aten::_foreach_"):
        return ""
    return (
        "; `warpsmith program apply fused-optimizer PROGRAM --step STEP` makes the optimizer's step over lists a "
        "single kernel"
    )


def call_name(signature: CallSignature) -> str:
    """Return the name of a call and of its workload.

    It has the sizes of the first tensor, or of all tensors of the first list, and the data type.
    """
    first = next(argument for argument in signature.arguments if argument.tensor is not None)
    tensors = [
        argument.tensor
        for argument in signature.arguments
        if argument.name == first.name and argument.tensor is not None
    ]
    shapes = [
        layout.stored_shape(argument.shape, layout.memory_order(argument.shape, argument.strides))
        for argument in tensors
    ]
    texts = ["x".join(map(str, shape)) or "scalar" for shape in shapes]
    text = "+".join(texts) if len(texts) <= _MAX_NAMED else f"{texts[0]}-and-{len(texts) - 1}-more"
    return f"{text}-{_workload_dtype(signature)}"[:75]


def _count_tensors(signature: CallSignature) -> int:
    return sum(argument.tensor is not None for argument in signature.arguments) + len(signature.outputs)


def _nonempty(output: RecordedTensor | None) -> RecordedTensor | None:
    return None if output is None or 0 in output.shape else output


def _refuse_form(operator: str, signature: CallSignature) -> None:
    tensors = [*(item.tensor for item in signature.arguments), *signature.outputs]
    for tensor in tensors:
        if tensor is not None and tensor.dtype not in DTYPES:
            raise Misuse(f"{operator} cannot become a definition: the program passes {tensor.dtype} tensors.")
    if not any(map(_nonempty, signature.outputs)):
        raise Misuse(f"{operator} cannot become a definition: it returns no tensor with elements.")
    if any(item.name == "dropout_p" and item.number for item in signature.arguments):
        raise Misuse(f"{operator} cannot become a definition: it draws random numbers (dropout_p is not 0).")
    if any(item.tensor is not None and 0 in item.tensor.shape for item in signature.arguments):
        raise Misuse(f"{operator} cannot become a definition: the program passes empty tensors.")
    for item in signature.outputs:
        if item is not None and not layout.is_dense(item.shape, item.strides):
            raise Misuse(f"{operator} cannot become a definition: its result has gaps in memory.")


def _form_key(signature: CallSignature) -> tuple[object, ...]:
    """Return the properties that all calls of a form share."""
    key: list[object] = []
    for item in signature.arguments:
        if item.tensor is None:
            source = item.source if not (_is_number(item) or item.name == _TRAILING_PARAMETER) else None
            key.append((item.element, source))
            continue
        tensor = item.tensor
        order = layout.memory_order(tensor.shape, tensor.strides)
        dense = layout.is_dense(tensor.shape, tensor.strides)
        unit_sizes = tuple(size == 1 for size in tensor.shape)
        kind = (_definition_dtype(tensor.dtype, signature), tensor.device, 0 in tensor.shape)
        key.append((item.element, len(tensor.shape), unit_sizes, tuple(order or ()), dense, *kind))
    results = (
        None if item is None else _definition_dtype(item.dtype, signature)
        for item in map(_nonempty, signature.outputs)
    )
    return (*key, *results)


def _is_number(argument: CallArgument) -> bool:
    return argument.number is not None and argument.name not in _CONSTANT_FLOATS


def _workload_dtype(signature: CallSignature) -> str:
    """Return the type of the first floating-point tensor, or else of the first floating-point result."""
    tensors = [*(item.tensor for item in signature.arguments), *signature.outputs]
    dtypes = (
        item.dtype for item in tensors if item is not None and item.dtype in DTYPES and is_floating(item.dtype)
    )
    return next(dtypes, "float32")


def _definition_dtype(dtype: str, signature: CallSignature) -> str:
    """Return a type, or `workload` if it is the workload's."""
    return "workload" if dtype == _workload_dtype(signature) else dtype


def _form_arguments(calls: Sequence[CallSignature]) -> list[FormArgument]:
    first, names, form_arguments = calls[0], set[str](), []
    for index, argument in enumerate(first.arguments):
        arguments = [signature.arguments[index] for signature in calls]
        slot = ArgumentSource(argument=argument.name, keyword=argument.keyword, element=argument.element)
        if argument.tensor is not None:
            tensors = [item.tensor for item in arguments if item.tensor is not None]
            order = layout.memory_order(argument.tensor.shape, argument.tensor.strides)
            update = {"input": _parameter_name(argument, names), "order": None if order is None else tuple(order)}
            form_arguments.append(
                FormArgument(
                    slot.model_copy(update=update),
                    dtype=_definition_dtype(argument.tensor.dtype, first),
                    tensors=tensors,
                    shapes=[layout.stored_shape(item.shape, order) for item in tensors],
                    strided=not layout.is_dense(argument.tensor.shape, argument.tensor.strides),
                )
            )
        elif _is_number(argument):
            numbers = [item.number for item in arguments if item.number is not None]
            form_arguments.append(
                FormArgument(slot.model_copy(update={"input": _parameter_name(argument, names)}), numbers=numbers)
            )
        else:
            trailing = len(argument.source.split(",")) if argument.name == _TRAILING_PARAMETER else 0
            form_arguments.append(
                FormArgument(slot.model_copy(update={"source": argument.source, "trailing": trailing}))
            )
    return form_arguments


def _parameter_name(argument: CallArgument, names: set[str]) -> str:
    """Return a parameter name that is valid and unused; tensors of a list are numbered."""
    name = (
        f"{_NAMES.get(argument.name, argument.name.lower())}{'' if argument.element is None else argument.element}"
    )
    name = f"{name}_" if keyword.iskeyword(name) else name
    while name in names:
        name += "_"
    names.add(name)
    return name


def most_common(numbers: Sequence[float], weights: Sequence[float]) -> float:
    """Return the number with the most calls."""
    count: Counter[float] = Counter()
    for number, weight in zip(numbers, weights, strict=True):
        count[number] += weight  # type: ignore[assignment]
    return max(count, key=lambda number: count[number])
