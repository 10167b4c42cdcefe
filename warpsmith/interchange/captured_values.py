"""Distributions of an operator's inputs, read off the tensors of captured calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.interchange.pytorch.distributions import observe_values

if TYPE_CHECKING:
    import torch

_TIGHT = 2
"""Largest ratio of an axis to the number of ids that its captured indices reach."""

_NOTABLE_ZEROS = 0.01


@dataclass(frozen=True)
class CapturedValues:
    """One captured tensor, or its first rows, with the sizes of its call."""

    tensor: torch.Tensor
    """Values on the CPU."""
    sizes: Mapping[str, int]
    """Size of every axis."""


@dataclass(frozen=True)
class InputStatistics:
    """Statistics of one input over all calls."""

    distribution: str
    """Distribution of its spec."""
    summary: str
    """Range, mean, deviation and structure of its values, in words."""


def describe_values(samples: Sequence[CapturedValues], dtype: str, axes: Sequence[str]) -> InputStatistics:
    """Describe one input by its values in all calls.

    Args:
        samples: its values, at least one call.
        dtype: its type.
        axes: names of its own axes, outermost first.
    """
    samples = [replace(sample, tensor=sample.tensor.detach()) for sample in samples if sample.tensor.numel()]
    if not samples or dtype == "bool":
        return InputStatistics("workload", "")
    return _describe_floats(samples) if is_floating(dtype) else _describe_integers(samples, axes)


def _describe_floats(samples: Sequence[CapturedValues]) -> InputStatistics:
    import torch

    values = torch.cat([sample.tensor.flatten() for sample in samples]).double()
    finite = values[values.isfinite()]
    first = samples[0].tensor
    is_constant = len(samples) > 1 and all(torch.equal(sample.tensor, first) for sample in samples[1:])
    distribution = observe_values(values, is_state=is_constant).distribution
    parts = []
    if finite.numel():
        parts.append(f"mean {float(finite.mean()):.2g}, deviation {float(finite.std(unbiased=False)):.2g}")
        parts.append(f"from {float(finite.min()):.3g} to {float(finite.max()):.3g}")
    zeros = float((values == 0).double().mean())
    parts += [f"{zeros:.0%} zeros"] if zeros >= _NOTABLE_ZEROS else []
    parts += [f"{values.numel() - finite.numel()} not finite"] if finite.numel() < values.numel() else []
    parts += ["the same in every call"] if is_constant else []
    return InputStatistics(distribution, ", ".join(parts))


def _describe_integers(samples: Sequence[CapturedValues], axes: Sequence[str]) -> InputStatistics:
    low = min(int(sample.tensor.min()) for sample in samples)
    high = max(int(sample.tensor.max()) for sample in samples)
    bounds = f"from {low} to {high}"
    if all(_rises_from_zero(sample.tensor) for sample in samples):
        if total := _axis_of_totals(samples):
            return InputStatistics(f"offsets:{total}", f"offsets that end at {total}")
        if not all(_is_distinct(sample.tensor) for sample in samples):
            return InputStatistics(f"offsets:{high}", f"ascending, {bounds}")
    axis = _bounding_axis(samples) if low >= 0 else None
    if low >= 0 and all(_is_distinct(sample.tensor) for sample in samples):
        is_permutation = all(int(sample.tensor.max()) + 1 == sample.tensor.shape[-1] for sample in samples)
        count = axes[-1] if is_permutation else axis or high + 1
        kind = "a permutation" if is_permutation else f"distinct, {bounds}"
        return InputStatistics(f"distinct:{count}", kind)
    if axis:
        return InputStatistics(f"integers:0:{axis}", f"indices below {axis}, {bounds}")
    return InputStatistics(f"integers:{low}:{high + 1}", bounds)


def _rises_from_zero(tensor: torch.Tensor) -> bool:
    """Return whether integers start at 0 and never fall along their only axis."""
    return tensor.ndim == 1 and tensor.numel() > 1 and int(tensor[0]) == 0 and bool((tensor.diff() >= 0).all())


def _is_distinct(tensor: torch.Tensor) -> bool:
    """Return whether no integer repeats in a row, and the rows say so: a single id never repeats."""
    if tensor.ndim == 0 or tensor.shape[-1] < 2:
        return False
    return bool((tensor.sort(-1).values.diff(dim=-1) != 0).all())


def _axis_of_totals(samples: Sequence[CapturedValues]) -> str | None:
    """Return the axis that the last offset equals in every call."""
    axes = samples[0].sizes
    return next((a for a in axes if all(int(s.tensor[-1]) == s.sizes[a] for s in samples)), None)


def _bounding_axis(samples: Sequence[CapturedValues]) -> str | None:
    """Return the axis just above the indices: they stay below it in every call, and get near it in one."""
    reach = [int(sample.tensor.max()) + 1 for sample in samples]
    ratios: dict[str, float] = {}
    for axis in samples[0].sizes:
        sizes = [sample.sizes[axis] for sample in samples]
        if all(most <= size for most, size in zip(reach, sizes, strict=True)):
            ratios[axis] = min(size / most for most, size in zip(reach, sizes, strict=True))
    best = min(ratios, key=lambda axis: ratios[axis], default=None)
    return best if best is not None and ratios[best] <= _TIGHT else None
