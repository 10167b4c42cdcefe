"""Source of a definition's reference, which calls PyTorch's operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warpsmith.program.operators import layout
from warpsmith.program.operators.call_form import FormArgument
from warpsmith.program.operators.models import ArgumentSource, ResultSource
from warpsmith.program.process import operator_values


class RegionReference(NamedTuple):
    """Text of a region in its definition, in place of an operator's name and call."""

    digest: str
    """Digest of the region."""
    kind: str
    """Kind of region in a word: `norm`."""
    body: str
    """Body of the reference."""

    @property
    def title(self) -> str:
        """Return the name of the region in sentences."""
        return f"{self.kind} region {self.digest}"


def reference_body(
    operator: str, parts: Sequence[FormArgument], results: Sequence[ResultSource], *, returns_list: bool
) -> str:
    """Return the body of `reference`; `returns_list` says that the operator returns its results in a list."""
    permutes = [
        f"{slot.input} = {slot.input}.permute{slot.order}" for slot in _slots(parts) if slot.order is not None
    ]
    several = returns_list or len(results) > 1
    call = f"{'results' if several else 'result'} = {_operator_call(operator, parts)}"
    returned = [
        f"results[{index}]{_undo_permutation(result)}" if several else f"result{_undo_permutation(result)}"
        for index, result in enumerate(results)
        if result.output is not None
    ]
    return "\n".join(f"    {line}" for line in (*permutes, call, f"return {', '.join(returned)}"))


def _operator_call(operator: str, parts: Sequence[FormArgument]) -> str:
    """Return the source of the call of the operator."""
    first = next(part.slot.input for part in parts if part.is_tensor)
    slots = _slots(parts)
    texts = [slot.input or _constant_source(slot, str(first)) for slot in slots]
    values = [
        f"[{', '.join(text)}]" if isinstance(text, list) else text
        for text in operator_values.rebuild_lists([slot.element for slot in slots], texts)
    ]
    arguments = [
        f"{slot.argument}={value}" if slot.keyword else value
        for slot, value in zip((slot for slot in slots if not slot.element), values, strict=True)
    ]
    space, _, name = operator.partition("::")
    packet, _, overload = name.partition(".")
    return f"torch.ops.{space}.{packet}.{overload or 'default'}({', '.join(arguments)})"


def _slots(parts: Sequence[FormArgument]) -> list[ArgumentSource]:
    return [part.slot for part in parts]


def _constant_source(slot: ArgumentSource, first: str) -> str:
    """Return the source of a constant that depends on the tensors, so that it also holds in float64."""
    if slot.argument == "half_to_float" and slot.source == "True":
        return f"{first}.dtype in (torch.float16, torch.bfloat16)"
    return f"list({first}.shape[-{slot.trailing}:])" if slot.trailing else slot.source


def _undo_permutation(result: ResultSource) -> str:
    """Return the source that gives a result the layout of the definition; empty if it has it."""
    return "" if result.order is None else f".permute{tuple(layout.inverse_order(result.order))}"
