"""Error figures of one output: largest error, norms, and a description of the first wrong element."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.core import gate_rules

if TYPE_CHECKING:
    import torch

BEYOND_ANY_BOUND = 1e9
"""Share of the bound that stands for a wrong NaN, infinity or integer."""

_PLANE = 2
"""Axes that an output needs to have slices."""

_PART_ELEMENTS = {"cpu": 1 << 18, "cuda": 1 << 26}
"""Elements that are graded at a time, by device: as many as stay in a cache, or take little of a GPU's memory."""


class ErrorFigures(NamedTuple):
    """Figures of an output, or of a part of it."""

    worst: float
    """Largest error as a share of its bound; NaN where an error is NaN."""
    wrong: float
    """Elements beyond their bound."""
    error: float
    """Sum of the squared errors."""
    within: float
    """Sum of the squared errors, where an error beyond the bound counts as the bound."""
    value: float
    """Sum of the reference's squares."""
    bound: float
    """Sum of the bounds' squares."""


def measure_errors(output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> ErrorFigures:
    """Compare every element of a floating-point output with the reference.

    The tensors have the same shape; `expected` and `bound` are float64.
    """
    figures = _combine_parts(_finite_figures, output, expected, bound)
    if figures.worst <= 1.0 and isfinite(figures.bound):
        return figures
    return _combine_parts(_careful_figures, output, expected, bound)  # there is a NaN, perhaps a right one


def split_in_parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the same elements of several tensors, flat and part by part."""
    size = _PART_ELEMENTS.get(tensors[0].device.type, _PART_ELEMENTS["cuda"])
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), size):
        yield tuple(tensor[start : start + size] for tensor in flat)


def _combine_parts(
    figures_of: Any,  # noqa: ANN401
    output: torch.Tensor,
    expected: torch.Tensor,
    bound: torch.Tensor,
) -> ErrorFigures:
    """Combine the figures of all parts, with a single wait for the device."""
    import torch

    rows = torch.stack([torch.stack(figures_of(*part)) for part in split_in_parts(output, expected, bound)])
    return ErrorFigures(float(rows[:, 0].max()), *rows[:, 1:].sum(0).tolist())


def _finite_figures(output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """Compute the figures in few passes; right for finite numbers within their bounds."""
    import torch

    difference = (output.double() - expected).abs_()
    squares = torch.dot(difference, difference)
    worst = torch.div(difference, bound, out=difference).max()
    return [
        worst,
        torch.zeros_like(worst),
        squares,
        squares,
        torch.dot(expected, expected),
        torch.dot(bound, bound),
    ]


def _careful_figures(output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """Compute the figures for any numbers.

    NaN and infinities of the reference must be met, and are no part of a norm.
    """
    import torch

    special, same = match_special_values(output, expected, bound)
    difference = (output.double() - expected).abs_()
    ratio = torch.where(difference == 0, 0.0, difference / bound)  # no error is within a bound of zero too
    shares = torch.where(special, torch.where(same, 0.0, BEYOND_ANY_BOUND), ratio)
    shares = shares.nan_to_num_(nan=BEYOND_ANY_BOUND, posinf=BEYOND_ANY_BOUND).clamp_(max=BEYOND_ANY_BOUND)
    outside = special | ~torch.isfinite(bound)
    error = difference.nan_to_num_(nan=BEYOND_ANY_BOUND, posinf=BEYOND_ANY_BOUND).masked_fill_(outside, 0.0)
    allowed, value = bound.masked_fill(outside, 0.0), expected.masked_fill(outside, 0.0)
    within = torch.minimum(error, allowed)
    squares = [torch.dot(part, part) for part in (error, within, value, allowed)]
    return [shares.max(), (shares > 1.0).sum(), *squares]


def match_special_values(
    output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mark elements where the rounded reference is NaN or infinite, and elements where the output equals it.

    The reference is rounded to the output's type. Where `bound` reaches beyond the type's largest number, infinity
    of the reference's sign and a number within the bound are both right, and the element is marked twice.
    """
    import torch

    actual, reference = output.double(), expected.to(output.dtype).double()
    special, same = ~reference.isfinite(), (actual == reference) | (actual.isnan() & reference.isnan())
    if bound is None:
        return special, same
    has_room = expected.isfinite() & bound.isfinite()
    at_end = has_room & (expected.abs() + bound >= torch.finfo(output.dtype).max)
    overflows = at_end & actual.isinf() & (actual.sign() == expected.sign())
    return special | overflows, same | overflows | (at_end & special & ((actual - expected).abs() <= bound))


def describe_wrong_slice(name: str, output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor) -> str:
    """Return a sentence about a slice of output `name` along an axis in which too many elements are beyond their
    bounds; empty without one."""
    least, share = gate_rules.MISMATCH_SLICE
    special, same = match_special_values(output, expected, bound)
    wrong = (~special & ((output.double() - expected).abs_() > bound)) | (special & ~same)
    for dim, size in enumerate(output.shape):
        length = output.numel() // max(size, 1)
        if length < least or output.ndim < _PLANE:
            continue
        shares = wrong.transpose(0, dim).flatten(1).double().mean(1)
        if float(shares.max()) > share:
            index = int(shares.argmax())
            return (
                f"{name} is wrong in {float(shares.max()):.0%} of the elements at {index} along its axis {dim}: "
                "mismatches that a definition allows are spread"
            )
    return ""


def has_wrong_special_value(
    output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | None = None
) -> bool:
    """Return True if output and rounded reference differ in a NaN, or an infinity that `bound` does not allow."""
    special, same = match_special_values(output, expected, bound)
    return bool(((special | ~output.double().isfinite()) & ~same).any())


def describe_wrong_element(
    name: str, wrong: int, output: torch.Tensor, expected: torch.Tensor, bound: torch.Tensor | None
) -> str:
    """Describe the first wrong element of output `name` and the share of wrong ones; `bound` None means exact."""
    import torch

    position = 0
    for actual, reference, allowed in split_in_parts(output, expected, expected if bound is None else bound):
        if bound is None:
            bad = actual != reference
        else:
            special, same = match_special_values(actual, reference, allowed)
            bad = ~torch.where(special, same, (actual.double() - reference).abs_() <= allowed)
        if bool(bad.any()):
            position += int(bad.int().argmax())
            break
        position += actual.numel()
    index = [int(i) for i in torch.unravel_index(torch.tensor(position), output.shape)]
    element = tuple(index)
    excess = f", off by more than {float(bound[element]):.3g}" if bound is not None else ""
    return (
        f"{name}{index} is {output[element].item()!r}, the reference {expected[element].item()!r}{excess}; "
        f"{wrong / output.numel():.2%} of the elements are wrong"
    )
