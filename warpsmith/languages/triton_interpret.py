"""Triton's interpreter, mended where it rounds other than GPUs do."""

from __future__ import annotations

from typing import Any


def mend() -> None:
    """Have float32 become fp8 as GPUs do it: to nearest, even on a tie, saturating.

    The interpreter loses the carry where a number rounds up to a power of two: 31.9 becomes 16.
    """
    import torch
    from triton.runtime import interpreter

    theirs, kinds = interpreter._convert_float, {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
    if theirs.__module__ == __name__:
        return

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:  # noqa: ANN401
        if source.name != "fp32" or target.name not in kinds:
            return theirs(data, source, target, rounding)
        kind = kinds[target.name]
        largest = torch.finfo(kind).max
        return torch.tensor(data).clamp(-largest, largest).to(kind).view(torch.uint8).numpy()

    interpreter._convert_float = convert
