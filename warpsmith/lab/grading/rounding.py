"""Rounding of narrow results to the nearest number; the next one toward zero shrinks every sum of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules, input_rules
from warpsmith.core.arithmetic.dtype import DTYPES, DType
from warpsmith.core.definition import Definition, Workload

if TYPE_CHECKING:
    import torch

_NARROW_BYTES = 2
"""Bytes of the widest type whose rounding shows in sums of results."""


def number_spacing(value: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Return the distance between the type's numbers around each float64 value."""
    import torch

    exponent = torch.frexp(value.nan_to_num()).exponent  # |value| is below 2**exponent, at half of it or above
    return torch.ldexp(torch.full_like(value, dtype.unit_roundoff), exponent).clamp_(min=dtype.smallest_subnormal)


def describe_truncation(
    definition: Definition,
    workload: Workload,
    outputs: Mapping[str, torch.Tensor],
    expected: Mapping[str, torch.Tensor],
) -> str:
    """Return a sentence about an output whose errors point toward zero in nearly every row; empty without one.

    An honest kernel may round a factor of a row, which moves the row's results one way or the other. It does not
    move all rows toward zero.

    Args:
        definition: the definition.
        workload: workload of the call, with inputs that are neither alike nor ordered.
        outputs: output to the result of a call.
        expected: output to its reference in float64.
    """
    for name, spec in definition.outputs.items():
        dtype = DTYPES[definition.dtype(spec, workload)]
        if not dtype.unit_roundoff or dtype.bytes > _NARROW_BYTES:
            continue
        means = _row_errors(outputs[name], expected[name], dtype)
        if means is None:
            continue
        low, middle, high = means.quantile(means.new_tensor([0.1, 0.5, 0.9])).tolist()
        if middle < -gate_rules.TRUNCATION_ULPS and high < 0:
            return _describe(name, "toward zero", middle)
        if (
            dtype.bytes == 1 and middle > gate_rules.TRUNCATION_ULPS and low > 0
        ):  # no honest factor moves them so far
            return _describe(name, "away from zero", middle)
    return ""


def _describe(name: str, direction: str, error: float) -> str:
    return (
        f"{name} is rounded {direction}: the mean error of half of its rows is {abs(error):.2f} units in the last "
        "place or more; round to the nearest number"
    )


def _row_errors(output: torch.Tensor, expected: torch.Tensor, dtype: DType) -> torch.Tensor | None:
    """Return each row's mean error away from zero, in units in the last place; None where that says nothing."""
    if output.ndim < 2 or not 0 < output.numel() <= input_rules.NEAR_ELEMENTS:
        return None
    value = expected.reshape(-1, expected.shape[-1])
    counted = value.isfinite() & (value.abs() * dtype.unit_roundoff > dtype.smallest_subnormal)
    spacing = number_spacing(value, dtype)
    errors = (output.reshape(value.shape).double() - value) * value.sign() / spacing
    errors = errors.nan_to_num().masked_fill_(~counted, 0.0)
    counts = counted.sum(-1)
    telling = counts >= gate_rules.TRUNCATION_VALUES
    means = errors.sum(-1)[telling] / counts[telling]
    return means if means.numel() >= gate_rules.TRUNCATION_ROWS else None
