"""Distributions of an operator's inputs, read off the values of its example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_UNIFORM_RATIO = 2.0
"""Largest ratio of half the range to the deviation of values that count as uniform; it is 1.73 for them."""

_SAMPLE = 1 << 20
_NOTABLE_SHIFT = 0.25
_SPREAD = 0.1
_PATTERN_VALUES = 2


@dataclass(frozen=True)
class ObservedValues:
    """Distribution of one tensor of the example."""

    distribution: str
    """Distribution of its spec; `workload` for standard normal values, `uniform` for values in [0, 1)."""
    low: int = 0
    """Least value of integers."""
    high: int = 0
    """Largest value of integers."""
    is_sorted: bool = False
    """True if the integers never fall along one axis."""


def observe_values(tensor: torch.Tensor, *, is_state: bool) -> ObservedValues:
    """Describe the values of one tensor.

    A constant state tensor, such as a norm's weight of ones, is drawn around its value: a kernel could ignore it
    otherwise. So is a running variance, which stays positive.
    """
    import torch

    if tensor.dtype == torch.bool or not tensor.numel():
        return ObservedValues("workload")
    flat = tensor.detach().flatten()
    if not tensor.is_floating_point():
        is_sorted = tensor.ndim == 1 and bool((flat.diff() >= 0).all())
        return ObservedValues("workload", int(flat.min()), int(flat.max()), is_sorted)
    values = flat[:: max(1, flat.numel() // _SAMPLE)].double()
    finite = values[values.isfinite()]
    if values.isneginf().any():
        return ObservedValues("masked")
    if not finite.numel():
        return ObservedValues("workload")
    low, high, mean = float(finite.min()), float(finite.max()), float(finite.mean())
    deviation = float(finite.std(unbiased=False))
    if low == high:
        return ObservedValues(_around(low) if is_state else "workload")
    if low >= 0 and high <= 1 and not is_state:
        return ObservedValues("uniform")
    if finite.numel() < 8 and not is_state:
        return ObservedValues("workload")
    if (high - low) / 2 <= _UNIFORM_RATIO * deviation or low >= 0:
        return ObservedValues(f"uniform:{_rounded(low)}:{_rounded(high)}")
    is_standard = abs(mean) < _NOTABLE_SHIFT and 0.5 < deviation < 2
    if is_standard:
        return ObservedValues("workload" if not is_state else "normal")
    center = mean if abs(mean) > _NOTABLE_SHIFT * deviation else 0.0
    return ObservedValues(f"normal:{_rounded(center)}:{_rounded(deviation)}")


def is_pattern(tensor: torch.Tensor) -> bool:
    """Return whether a buffer holds a pattern, such as a causal mask or positions, that no draw could replace."""
    if not tensor.is_floating_point():
        return True
    values = tensor.detach().flatten()
    is_binary = bool(((values == values.min()) | (values == values.max())).all()) if tensor.numel() else False
    return tensor.numel() > _PATTERN_VALUES and is_binary and bool(values.min() != values.max())


def drawn_values(generator: str) -> ObservedValues:
    """Describe the values of a tensor without data by what drew it: `uniform`, or `integers:<low>:<high>`."""
    kind, *numbers = generator.split(":")
    if kind == "integers":
        return ObservedValues("workload", int(numbers[0]), int(numbers[1]) - 1)
    return ObservedValues("uniform" if kind == "uniform" else "workload", 0, 1)


def _around(value: float) -> str:
    if value > 0:
        return f"uniform:{_rounded(value / 2)}:{_rounded(value * 1.5)}"
    return f"normal:{_rounded(value)}:{_rounded(max(abs(value), 1.0) * _SPREAD)}"


def _rounded(value: float) -> str:
    """Return a number with two significant digits, as arithmetic has it."""
    return f"{float(f'{value:.2g}'):.10f}".rstrip("0").rstrip(".") or "0"
