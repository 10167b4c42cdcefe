"""Fixes to Triton's interpreter: it rounds unlike GPUs, looks up the language's builtins at every call, and host
code finds no GPU to ask."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

_DEVICE = SimpleNamespace(
    name="interpreter",
    multi_processor_count=3,  # so few that loops over work run more than once
    max_threads_per_multi_processor=2048,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=60 << 20,
    major=9,
    minor=0,
    warp_size=32,
)
"""Figures of a small GPU: host code's choices depend on them, no result does."""


def patch_interpreter() -> None:
    """Apply the fixes in this process; a second call changes nothing."""
    from triton.runtime import interpreter

    if interpreter._convert_float.__module__ != __name__:
        _round_like_gpus(interpreter)
        _cache_builtins(interpreter)
        _show_small_device()


def _round_like_gpus(interpreter: Any) -> None:  # noqa: ANN401 - Triton's module
    """Convert float32 and float16 to fp8 as GPUs do: to nearest, ties to even, saturating.

    The interpreter loses the carry when a number rounds up to a power of two: 31.9 becomes 16. Rounding to zero
    has no carry, so e5m2 stays the interpreter's there; to e4m3 GPUs only round to nearest: it raises ValueError.
    """
    import torch

    original, kinds = interpreter._convert_float, {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:  # noqa: ANN401
        if source.name not in ("fp32", "fp16") or target.name not in kinds:
            return original(data, source, target, rounding)
        if rounding == interpreter._ir.ROUNDING_MODE.RTZ:
            if target.name == "fp8e4nv":
                raise ValueError('GPUs round to e4m3 only to nearest; leave out fp_downcast_rounding="rtz"')
            return original(data, source, target, rounding)
        kind = kinds[target.name]
        largest = torch.finfo(kind).max
        # Clipped by numpy: an operation of PyTorch would count as a library that does the version's work.
        exact = data.astype("float32").clip(-largest, largest)
        return torch.from_numpy(exact).to(kind).view(torch.uint8).numpy()

    interpreter._convert_float = convert


def _show_small_device() -> None:
    """Answer host code that asks for a GPU's figures; without a driver PyTorch raises."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_available():
        cuda.get_device_properties = lambda *_, **__: _DEVICE
        cuda.get_device_capability = lambda *_, **__: (_DEVICE.major, _DEVICE.minor)
        cuda.current_stream = lambda *_, **__: SimpleNamespace(cuda_stream=0)


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
