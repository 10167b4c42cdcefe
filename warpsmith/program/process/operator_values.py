"""In the program's process: arguments of operators as text, by which calls are told apart and written down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

Value = TypeVar("Value")

_TENSORS = "List[Tensor]"
"""PyTorch's own name of a list of tensors."""


def argument_source(value: object) -> str:
    """Python source of an operator's argument that is no tensor; raises TypeError where there is none."""
    import torch

    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return str(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value.type}")'
    if isinstance(value, list | tuple):
        return f"[{', '.join(argument_source(each) for each in value)}]"
    raise TypeError(f"a {type(value).__name__}")


class OperatorArgument(NamedTuple):
    """One argument of a call, or one element of an argument that is a list of tensors."""

    argument: str
    """As the schema names it."""
    keyword: bool
    """Whether it can be given by name only."""
    element: int | None
    """Its place in the list; None: it is no element of one."""
    value: Any
    """A tensor, a number, whatever the schema says."""


def bind_arguments(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[OperatorArgument]:  # noqa: ANN401 - OpOverload
    """All arguments in the schema's order, lists of tensors one by one; what is left out is at its default."""
    parameters, found = _parameters(operator), list[OperatorArgument]()
    for place, (name, keyword, default) in enumerate(parameters):
        whole = args[place] if place < len(args) else kwargs.get(name, default)
        if _is_list(whole):
            found += [OperatorArgument(name, keyword, element, value) for element, value in enumerate(whole)]
        else:
            found.append(OperatorArgument(name, keyword, None, whole))
    return found


@cache
def _parameters(operator: Any) -> list[tuple[str, bool, Any]]:  # noqa: ANN401 - OpOverload
    """Name, whether it can be given by name only, and default of each: the schema takes long to tell, and an
    integrated operator's calls all ask."""
    return [(one.name, one.kwarg_only, one.default_value) for one in operator._schema.arguments]


def rebuild_lists(elements: Iterable[int | None], values: Iterable[Value]) -> list[Value | list[Value]]:
    """The arguments again out of what `bound` took apart: elements of a list follow one another from 0 on."""
    found: list[Value | list[Value]] = []
    for element, value in zip(elements, values, strict=True):
        last = found[-1] if element else None
        if isinstance(last, list):
            last.append(value)
        else:
            found.append(value if element is None else [value])
    return found


def split_arguments(operator: Any, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:  # noqa: ANN401 - OpOverload
    """All arguments in the schema's order, as they are called: those by place, and those by name."""
    arguments = operator._schema.arguments
    placed = [value for one, value in zip(arguments, values, strict=True) if not one.kwarg_only]
    return placed, {one.name: value for one, value in zip(arguments, values, strict=True) if one.kwarg_only}


def returns_tensor_list(operator: Any) -> bool:  # noqa: ANN401 - OpOverload
    """Whether its one result is a list of tensors."""
    return [str(one.type) for one in operator._schema.returns] == [_TENSORS]


def find_operator(name: str) -> Any:  # noqa: ANN401 - OpOverload
    """PyTorch's operator of a whole schema name: `aten::mm`, `aten::add.Tensor`; raises AttributeError."""
    packet, _, overload = name.partition(".")
    return getattr(_packet(packet), overload or "default")


def list_overloads(name: str) -> list[Any]:
    """The operators that a name means, all of a packet where it names no overload; empty where there are none."""
    try:
        packet = _packet(name.partition(".")[0])
        found = [getattr(packet, one) for one in packet.overloads()]
    except (AttributeError, RuntimeError):
        return []
    return [one for one in found if "." not in name or one.name() == name]


def is_composite(operator: Any, device: str) -> bool:  # noqa: ANN401 - OpOverload
    """Whether PyTorch makes it of other operators on `cpu` or `cuda`, before autograd sees it."""
    import torch

    has: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    name = operator.name()
    try:
        return bool(has(name, "CompositeImplicitAutograd") and not has(name, device.upper()))
    except RuntimeError:  # some overloads are TorchScript's alone
        return False


def _packet(name: str) -> Any:  # noqa: ANN401 - OpOverloadPacket
    import torch

    space, _, packet = name.partition("::")
    return getattr(getattr(torch.ops, space), packet)


def operator_refusal(operator: Any) -> str:  # noqa: ANN401 - OpOverload
    """Why an operator cannot become a definition, whatever it is called with; empty: it can."""
    import torch

    schema = operator._schema
    shared = [one.alias_info for one in (*schema.arguments, *schema.returns) if one.alias_info is not None]
    if shared:
        return f"it {'writes into its arguments' if any(one.is_write for one in shared) else 'returns a view'}"
    if torch.Tag.nondeterministic_seeded in operator.tags and not _has_dropout_option(operator):
        return "it draws random numbers"
    results = [str(one.type) for one in schema.returns]
    if results != [_TENSORS] and set(results) != {"Tensor"}:
        return "its results are not all tensors"
    if not any("Tensor" in str(one.type) for one in schema.arguments):
        return "it takes no tensor"
    return ""


def _has_dropout_option(operator: Any) -> bool:  # noqa: ANN401 - OpOverload
    """Whether it is random only by a dropout that calls may leave out."""
    return any(one.name == "dropout_p" for one in operator._schema.arguments)


def _is_list(value: object) -> bool:
    """Whether an argument is a list that holds tensors."""
    if not isinstance(value, list | tuple):
        return False
    import torch

    return any(isinstance(one, torch.Tensor) for one in value)
