"""Form: calls of an operator that one definition can cover, and what each argument becomes in it."""

from __future__ import annotations

import keyword
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from warpsmith.core.dtype import DTYPES, is_floating
from warpsmith.errors import MissingInput, Misuse
from warpsmith.program.operators import layout
from warpsmith.program.operators.models import ArgumentSource, CallArgument, CallSignature, RecordedTensor

_TRAILING_PARAMETER = "normalized_shape"
"""The parameter that repeats the last sizes of the first tensor."""

_CONSTANT_FLOATS = ("exponent", "dropout_p", "p", "alpha", "beta", "ord")
"""Floats that say what is computed, and not with which number."""

MAX_TENSORS = 64
"""Tensors of one call, results too: a kernel's arguments, 4 KiB on a GPU, hold so many with sizes and strides."""

_MAX_NAMED = 3
"""A call's name tells the sizes of so many tensors of a list."""

_MAX_LISTED = 8

_NAMES = {"self": "x", "input": "x", "mat1": "a", "mat2": "b", "torch": "torch_"}


@dataclass
class FormArgument:
    """One argument in all calls of a form."""

    slot: ArgumentSource
    """Where it comes from."""
    dtype: str = ""
    """Of a tensor: its type, or `workload`."""
    seen: list[RecordedTensor] = field(default_factory=list)
    """Of a tensor, call by call."""
    shapes: list[list[int]] = field(default_factory=list)
    """Of a tensor, as the definition has it, call by call."""
    numbers: list[float] = field(default_factory=list)
    """Of a number, call by call."""
    strided: bool = False
    """Whether the tensor lies in a part of its memory."""

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return bool(self.seen)


@dataclass
class CallForm:
    """Calls that differ in sizes, in numbers and in the workload's dtype alone."""

    signatures: tuple[CallSignature, ...]
    """The calls, the most time first."""
    parts: list[FormArgument]
    """Their arguments in order."""
    dtypes: list[str]
    """The workload's dtype, call by call."""
    outputs: list[str | None]
    """Each result's dtype, or `workload`; None: undefined."""
    left_out: tuple[CallSignature, ...] = ()
    """Calls of other forms."""
    others: tuple[tuple[CallSignature, ...], ...] = ()
    """Those of them that `choose` takes by a name, by form, the most time first."""

    @property
    def results(self) -> list[tuple[bool, tuple[int, ...] | None]]:
        """Whether each result is there, and the permutation that makes it out of a contiguous tensor."""
        found: list[tuple[bool, tuple[int, ...] | None]] = []
        for one in map(_nonempty, self.signatures[0].outputs):
            order = None if one is None else layout.memory_order(one.shape, one.strides)
            found.append((one is not None, None if order is None else tuple(order)))
        return found

    def call(self, place: int) -> list[dict[str, Any]]:
        """One call as the task `operator_axes` takes it."""
        return [
            {"element": part.slot.element, **self._value(part, self.signatures[place].arguments[at], place)}
            for at, part in enumerate(self.parts)
        ]

    def _value(self, part: FormArgument, argument: CallArgument, place: int) -> dict[str, Any]:
        if not part.is_tensor:
            return {"source": argument.source, "trailing": part.slot.trailing}
        seen = part.seen[place]
        return {
            "shape": part.shapes[place], "order": part.slot.order, "dtype": seen.dtype, "device": seen.device
        }  # fmt: skip


def choose_form(operator: str, signatures: Sequence[CallSignature], like: str = "") -> CallForm:
    """The form of an operator's calls that takes the most time, of those with a call whose name holds `like`.

    Raises:
        Misuse: they cannot become a definition.
        MissingInput: no call is like that.
    """
    by_form: dict[tuple[object, ...], list[CallSignature]] = defaultdict(list)
    for signature in _usable_calls(operator, signatures):
        by_form[_form_key(signature)].append(signature)
    forms = sorted(by_form.values(), key=lambda group: -sum(one.seconds for one in group))
    chosen = _select_form(operator, forms, like)
    rest = tuple(one for one in signatures if one not in chosen)
    _refuse_form(operator, chosen[0])
    told = {call_name(one): group for group in reversed(forms) for one in group}
    return CallForm(
        tuple(chosen),
        _form_arguments(chosen),
        [_workload_dtype(one) for one in chosen],
        [
            None if one is None else _definition_dtype(one.dtype, chosen[0])
            for one in map(_nonempty, chosen[0].outputs)
        ],
        rest,
        tuple(tuple(one) for one in forms if one is not chosen and told[call_name(one[0])] is one),
    )


def _usable_calls(operator: str, signatures: Sequence[CallSignature]) -> list[CallSignature]:
    """The calls whose arguments a definition can name."""
    given = [one for one in signatures if any(each.tensor for each in one.arguments)]
    if not given:
        raise Misuse(
            f"{operator} cannot become a definition: the program gives it no tensor, or something that has no "
            "source, such as a sparse tensor."
        )
    usable = [one for one in given if _count_tensors(one) <= MAX_TENSORS]
    if not usable:
        least = min(map(_count_tensors, given))
        raise Misuse(
            f"{operator} cannot become a definition: a call passes and returns at least {least} tensors, and a "
            f"definition names {MAX_TENSORS} at most{alternative_hint(operator)}."
        )
    return usable


def _select_form(operator: str, forms: Sequence[list[CallSignature]], like: str) -> list[CallSignature]:
    """The first form with a call of that name, else with one whose name holds it."""
    for group in forms:
        if any(like == call_name(one) for one in group):
            return group
    for group in forms:
        if any(like in call_name(one) for one in group):
            return group
    there = ", ".join(list(dict.fromkeys(call_name(group[0]) for group in forms))[:_MAX_LISTED])
    raise MissingInput(f"No call of {operator} is like `{like}`; there are: {there}.")


def alternative_hint(operator: str) -> str:
    """What else there is for an operator that cannot become a definition; empty where nothing is known."""
    if not operator.startswith("aten::_foreach_"):
        return ""
    return (
        "; an optimizer's step over lists is made one kernel by `warpsmith program apply fused-optimizer PROGRAM "
        "--step STEP`"
    )


def call_name(signature: CallSignature) -> str:
    """A call's name, its workload's too: sizes of the first tensor, or of all in the first list, and the type."""
    first = next(one for one in signature.arguments if one.tensor is not None)
    tensors = [one.tensor for one in signature.arguments if one.name == first.name and one.tensor is not None]
    shapes = [layout.stored_shape(one.shape, layout.memory_order(one.shape, one.strides)) for one in tensors]
    texts = ["x".join(map(str, shape)) or "scalar" for shape in shapes]
    text = "+".join(texts) if len(texts) <= _MAX_NAMED else f"{texts[0]}-and-{len(texts) - 1}-more"
    return f"{text}-{_workload_dtype(signature)}"[:75]


def _count_tensors(signature: CallSignature) -> int:
    return sum(one.tensor is not None for one in signature.arguments) + len(signature.outputs)


def _nonempty(output: RecordedTensor | None) -> RecordedTensor | None:
    return None if output is None or 0 in output.shape else output


def _refuse_form(operator: str, signature: CallSignature) -> None:
    tensors = [*(one.tensor for one in signature.arguments), *signature.outputs]
    for tensor in tensors:
        if tensor is not None and tensor.dtype not in DTYPES:
            raise Misuse(f"{operator} cannot become a definition: the program gives it {tensor.dtype} tensors.")
    if not any(map(_nonempty, signature.outputs)):
        raise Misuse(f"{operator} cannot become a definition: it returns no tensor with elements.")
    if any(one.name == "dropout_p" and one.number for one in signature.arguments):
        raise Misuse(f"{operator} cannot become a definition: it draws random numbers (dropout_p is not 0).")
    if any(one.tensor is not None and 0 in one.tensor.shape for one in signature.arguments):
        raise Misuse(f"{operator} cannot become a definition: the program gives it empty tensors.")
    for one in signature.outputs:
        if one is not None and not layout.is_dense(one.shape, one.strides):
            raise Misuse(f"{operator} cannot become a definition: its result has gaps in memory.")


def _form_key(signature: CallSignature) -> tuple[object, ...]:
    """What all calls of a form have in common."""
    found: list[object] = []
    for one in signature.arguments:
        if one.tensor is None:
            source = one.source if not (_is_number(one) or one.name == _TRAILING_PARAMETER) else None
            found.append((one.element, source))
            continue
        tensor = one.tensor
        order = layout.memory_order(tensor.shape, tensor.strides)
        dense = layout.is_dense(tensor.shape, tensor.strides)
        ones = tuple(size == 1 for size in tensor.shape)
        kind = (_definition_dtype(tensor.dtype, signature), tensor.device, 0 in tensor.shape)
        found.append((one.element, len(tensor.shape), ones, tuple(order or ()), dense, *kind))
    results = (
        None if one is None else _definition_dtype(one.dtype, signature)
        for one in map(_nonempty, signature.outputs)
    )
    return (*found, *results)


def _is_number(argument: CallArgument) -> bool:
    return argument.number is not None and argument.name not in _CONSTANT_FLOATS


def _workload_dtype(signature: CallSignature) -> str:
    """The type of the first floating-point tensor, else of the first result that is one."""
    tensors = [*(one.tensor for one in signature.arguments), *signature.outputs]
    found = (one.dtype for one in tensors if one is not None and one.dtype in DTYPES and is_floating(one.dtype))
    return next(found, "float32")


def _definition_dtype(dtype: str, signature: CallSignature) -> str:
    """A type, or `workload` where it is that one."""
    return "workload" if dtype == _workload_dtype(signature) else dtype


def _form_arguments(chosen: Sequence[CallSignature]) -> list[FormArgument]:
    first, taken, parts = chosen[0], set[str](), []
    for place, one in enumerate(first.arguments):
        given = [signature.arguments[place] for signature in chosen]
        slot = ArgumentSource(argument=one.name, keyword=one.keyword, element=one.element)
        if one.tensor is not None:
            seen = [each.tensor for each in given if each.tensor is not None]
            order = layout.memory_order(one.tensor.shape, one.tensor.strides)
            named = {"input": _parameter_name(one, taken), "order": None if order is None else tuple(order)}
            parts.append(
                FormArgument(
                    slot.model_copy(update=named),
                    dtype=_definition_dtype(one.tensor.dtype, first),
                    seen=seen,
                    shapes=[layout.stored_shape(each.shape, order) for each in seen],
                    strided=not layout.is_dense(one.tensor.shape, one.tensor.strides),
                )
            )
        elif _is_number(one):
            numbers = [each.number for each in given if each.number is not None]
            parts.append(
                FormArgument(slot.model_copy(update={"input": _parameter_name(one, taken)}), numbers=numbers)
            )
        else:
            trailing = len(one.source.split(",")) if one.name == _TRAILING_PARAMETER else 0
            parts.append(FormArgument(slot.model_copy(update={"source": one.source, "trailing": trailing})))
    return parts


def _parameter_name(given: CallArgument, taken: set[str]) -> str:
    """A parameter's name that Python takes and no other has; a list's tensors are numbered."""
    name = f"{_NAMES.get(given.name, given.name.lower())}{'' if given.element is None else given.element}"
    name = f"{name}_" if keyword.iskeyword(name) else name
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def most_common(numbers: Sequence[float], weights: Sequence[float]) -> float:
    """The number with the most calls."""
    count: Counter[float] = Counter()
    for number, weight in zip(numbers, weights, strict=True):
        count[number] += weight  # type: ignore[assignment]
    return max(count, key=lambda one: count[one])
