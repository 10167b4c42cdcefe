"""In the program's process: operators by name, and their arguments as text that identifies a call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

Value = TypeVar("Value")

_TENSORS = "List[Tensor]"
"""Type of a list of tensors in PyTorch's schemas."""


def argument_source(value: object) -> str:
    """Return the Python source of an argument that is not a tensor; raise TypeError if it has none."""
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
        return f"[{', '.join(argument_source(item) for item in value)}]"
    raise TypeError(f"a {type(value).__name__}")


class OperatorArgument(NamedTuple):
    """One argument of a call, or one element of an argument that is a list of tensors."""

    argument: str
    """Name of the argument in the schema."""
    keyword: bool
    """True if the argument is keyword-only."""
    element: int | None
    """Index in the list; None if the argument is not a list of tensors."""
    value: Any
    """Value of the type that the schema names."""


def bind_arguments(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[OperatorArgument]:  # noqa: ANN401 - OpOverload
    """List all arguments in the schema's order, defaults included, and lists of tensors by element."""
    arguments: list[OperatorArgument] = []
    for index, (name, keyword, default) in enumerate(_list_parameters(operator)):
        whole = args[index] if index < len(args) else kwargs.get(name, default)
        if _is_list(whole):
            arguments += [OperatorArgument(name, keyword, element, value) for element, value in enumerate(whole)]
        else:
            arguments.append(OperatorArgument(name, keyword, None, whole))
    return arguments


@cache
def _list_parameters(operator: Any) -> list[tuple[str, bool, Any]]:  # noqa: ANN401 - OpOverload
    """List name, keyword-only flag and default of each parameter.

    Reading a schema takes long, and each call of an integrated operator needs it, so the list is cached.
    """
    return [(item.name, item.kwarg_only, item.default_value) for item in operator._schema.arguments]


def rebuild_lists(elements: Iterable[int | None], values: Iterable[Value]) -> list[Value | list[Value]]:
    """Rebuild the arguments from the elements of `bind_arguments`; each list begins at element 0."""
    arguments: list[Value | list[Value]] = []
    for element, value in zip(elements, values, strict=True):
        last = arguments[-1] if element else None
        if isinstance(last, list):
            last.append(value)
        else:
            arguments.append(value if element is None else [value])
    return arguments


def split_arguments(operator: Any, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:  # noqa: ANN401 - OpOverload
    """Split all arguments, in the schema's order, into positional and keyword-only ones."""
    arguments = operator._schema.arguments
    pairs = list(zip(arguments, values, strict=True))
    positional = [value for item, value in pairs if not item.kwarg_only]
    return positional, {item.name: value for item, value in pairs if item.kwarg_only}


def returns_tensor_list(operator: Any) -> bool:  # noqa: ANN401 - OpOverload
    """Return true if its only result is a list of tensors."""
    return [str(item.type) for item in operator._schema.returns] == [_TENSORS]


def get_operator(name: str) -> Any:  # noqa: ANN401 - OpOverload
    """Return the operator of a schema name, such as `aten::add.Tensor`; raise AttributeError if there is none."""
    packet, _, overload = name.partition(".")
    return getattr(_packet(packet), overload or "default")


def list_overloads(name: str) -> list[Any]:
    """List the operators of a name; all overloads if it names none, nothing if it is unknown."""
    try:
        packet = _packet(name.partition(".")[0])
        overloads = [getattr(packet, overload) for overload in packet.overloads()]
    except (AttributeError, RuntimeError):
        return []
    return [overload for overload in overloads if "." not in name or overload.name() == name]


def is_composite(operator: Any, device: str) -> bool:  # noqa: ANN401 - OpOverload
    """Return true if PyTorch replaces it with other operators on `cpu` or `cuda`, before autograd sees it."""
    import torch

    has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    name = operator.name()
    try:
        return bool(has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, device.upper()))
    except RuntimeError:  # some overloads exist only in TorchScript
        return False


def _packet(name: str) -> Any:  # noqa: ANN401 - OpOverloadPacket
    import torch

    namespace, _, packet = name.partition("::")
    return getattr(getattr(torch.ops, namespace), packet)


def operator_refusal(operator: Any) -> str:  # noqa: ANN401 - OpOverload
    """Return why no call of an operator can become a definition; empty if calls can."""
    import torch

    schema = operator._schema
    aliases = [item.alias_info for item in (*schema.arguments, *schema.returns) if item.alias_info is not None]
    if aliases:
        return "it writes into its arguments" if any(alias.is_write for alias in aliases) else "it returns a view"
    if torch.Tag.nondeterministic_seeded in operator.tags and not _has_dropout_option(operator):
        return "it draws random numbers"
    results = [str(item.type) for item in schema.returns]
    if results != [_TENSORS] and set(results) != {"Tensor"}:
        return "its results are not all tensors"
    if not any("Tensor" in str(item.type) for item in schema.arguments):
        return "it takes no tensor"
    return ""


def _has_dropout_option(operator: Any) -> bool:  # noqa: ANN401 - OpOverload
    """Return true if it is random only because of a dropout that a call may leave out."""
    return any(item.name == "dropout_p" for item in operator._schema.arguments)


def _is_list(value: object) -> bool:
    """Return true if an argument is a list that contains tensors."""
    if not isinstance(value, list | tuple):
        return False
    import torch

    return any(isinstance(item, torch.Tensor) for item in value)
