"""Fixes to Triton's interpreter: it rounds unlike GPUs, and looks up the language's builtins at every call."""

from __future__ import annotations

from typing import Any


def patch_interpreter() -> None:
    """Apply both fixes in this process; a second call changes nothing."""
    from triton.runtime import interpreter

    if interpreter._convert_float.__module__ != __name__:
        _round_like_gpus(interpreter)
        _cache_builtins(interpreter)


def _round_like_gpus(interpreter: Any) -> None:  # noqa: ANN401 - Triton's module
    """Convert float32 to fp8 as GPUs do: to nearest, ties to even, saturating.

    The interpreter loses the carry when a number rounds up to a power of two: 31.9 becomes 16.
    """
    import torch

    original, kinds = interpreter._convert_float, {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:  # noqa: ANN401
        if source.name != "fp32" or target.name not in kinds:
            return original(data, source, target, rounding)
        kind = kinds[target.name]
        largest = torch.finfo(kind).max
        return torch.tensor(data).clamp(-largest, largest).to(kind).view(torch.uint8).numpy()

    interpreter._convert_float = convert


def _cache_builtins(interpreter: Any) -> None:  # noqa: ANN401
    """Find the language's builtins once in a process.

    The interpreter goes through all members of the language at each call of a jitted function, `tl.sum` in every
    program included. That takes half of its time.
    """
    import inspect

    from triton.language.core import is_builtin

    builtins: dict[Any, list[str]] = {}

    def patch(package: Any, builder: Any, scope: Any) -> None:  # noqa: ANN401
        if package not in builtins:  # nothing is patched yet at the first call
            builtins[package] = [name for name, member in inspect.getmembers(package) if is_builtin(member)]
        for name in builtins[package]:
            if is_builtin(member := getattr(package, name)):
                interpreter._patch_attr(package, name, member, builder, scope)

    interpreter._patch_builtin = patch
