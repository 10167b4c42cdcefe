"""In the program's process: arguments of operators as text, by which calls are told apart and written down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def source(value: object) -> str:
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
        return f"[{', '.join(source(each) for each in value)}]"
    raise TypeError(f"a {type(value).__name__}")


def bound(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:  # noqa: ANN401 - OpOverload
    """All arguments in the schema's order, those that are left out at their defaults."""
    values = list(args)
    for argument in operator._schema.arguments[len(values) :]:
        values.append(kwargs.get(argument.name, argument.default_value))
    return values


def called(operator: Any, values: Sequence[Any]) -> Any:  # noqa: ANN401 - OpOverload
    """Call an operator with all its arguments in the schema's order."""
    args, kwargs = split(operator, values)
    return operator(*args, **kwargs)


def split(operator: Any, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:  # noqa: ANN401 - OpOverload
    """All arguments in the schema's order, as they are called: those by place, and those by name."""
    arguments = operator._schema.arguments
    placed = [value for one, value in zip(arguments, values, strict=True) if not one.kwarg_only]
    return placed, {one.name: value for one, value in zip(arguments, values, strict=True) if one.kwarg_only}


def find(name: str) -> Any:  # noqa: ANN401 - OpOverload
    """PyTorch's operator of a whole schema name: `aten::mm`, `aten::add.Tensor`; raises AttributeError."""
    packet, _, overload = name.partition(".")
    return getattr(_packet(packet), overload or "default")


def overloads(name: str) -> list[Any]:
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


def refusal(operator: Any) -> str:  # noqa: ANN401 - OpOverload
    """Why an operator cannot become a definition, whatever it is called with; empty: it can."""
    import torch

    schema = operator._schema
    if any(one.alias_info is not None for one in (*schema.arguments, *schema.returns)):
        return "it returns a view or writes into its arguments"
    if torch.Tag.nondeterministic_seeded in operator.tags and not _without_dropout(operator):
        return "it draws random numbers"
    if not schema.returns or any(str(one.type) != "Tensor" for one in schema.returns):
        return "its results are not all tensors"
    if not any("Tensor" in str(one.type) for one in schema.arguments):
        return "it takes no tensor"
    return ""


def _without_dropout(operator: Any) -> bool:  # noqa: ANN401 - OpOverload
    """Whether it is random only by a dropout that calls may leave out."""
    return any(one.name == "dropout_p" for one in operator._schema.arguments)
