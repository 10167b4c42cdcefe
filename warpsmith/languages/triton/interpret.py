"""Triton's interpreter, mended where it rounds other than GPUs do, and where it looks up names at every call."""

from __future__ import annotations

from typing import Any


def mend() -> None:
    """Both, in this process; again is no change."""
    from triton.runtime import interpreter

    if interpreter._convert_float.__module__ != __name__:
        _round_as_gpus(interpreter)
        _look_up_once(interpreter)


def _round_as_gpus(interpreter: Any) -> None:  # noqa: ANN401 - Triton's module
    """Have float32 become fp8 as GPUs do it: to nearest, even on a tie, saturating.

    The interpreter loses the carry where a number rounds up to a power of two: 31.9 becomes 16.
    """
    import torch

    theirs, kinds = interpreter._convert_float, {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:  # noqa: ANN401
        if source.name != "fp32" or target.name not in kinds:
            return theirs(data, source, target, rounding)
        kind = kinds[target.name]
        largest = torch.finfo(kind).max
        return torch.tensor(data).clamp(-largest, largest).to(kind).view(torch.uint8).numpy()

    interpreter._convert_float = convert


def _look_up_once(interpreter: Any) -> None:  # noqa: ANN401
    """Find the language's builtins once a process.

    The interpreter goes through all members of the language at each call of a jitted function, `tl.sum` in every
    program included: half of its time.
    """
    import inspect

    from triton.language.core import is_builtin

    known: dict[Any, list[str]] = {}

    def patch(package: Any, builder: Any, scope: Any) -> None:  # noqa: ANN401
        if package not in known:  # nothing is patched yet at the first call
            known[package] = [name for name, member in inspect.getmembers(package) if is_builtin(member)]
        for name in known[package]:
            if is_builtin(member := getattr(package, name)):
                interpreter._patch_attr(package, name, member, builder, scope)

    interpreter._patch_builtin = patch
