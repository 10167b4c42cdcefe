"""Rounding of narrow results to the nearest number, where cut ones move every sum of them, and of subnormal
numbers to zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.dtype import DTYPES, DType
from warpsmith.core.definition import Definition, Workload
from warpsmith.lab.operator import input_rules

if TYPE_CHECKING:
    import torch

_NARROW_BYTES = 2
"""Bytes of the widest type whose rounding shows in sums of results."""

_SHORT_ROWS = 64
"""Rows at least of an output with fewer than 16 pieces, whose rows are short. Chosen: if all are cut, their mean
error is eight times its standard error."""

_DEVIATIONS = 7.0
"""Standard errors that the mean error of short rows is from zero. Chosen: no scatter of 64 rows comes so far."""


def zero_subnormals(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the inputs in float64 with subnormal numbers replaced by zeros."""
    return {
        name: tensor.double().masked_fill(find_subnormals(tensor), 0.0) if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }


def find_subnormals(tensor: torch.Tensor) -> torch.Tensor:
    """Mark subnormal numbers; float16 has none, because they are normal numbers of float32."""
    import torch

    if tensor.dtype not in (torch.float32, torch.bfloat16):
        return torch.zeros((), dtype=torch.bool, device=tensor.device)
    return (tensor.abs() < torch.finfo(tensor.dtype).tiny) & (tensor != 0)


def flushing_difference(value: torch.Tensor, flushed: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return how far a result may move where subnormal inputs and results are flushed to zero."""
    return (value - flushed).abs_().nan_to_num_(nan=0.0, posinf=0.0).add_(smallest_unflushed(dtype))


def smallest_unflushed(dtype: str) -> float:
    """Return the size below which a result may be zero.

    Devices flush subnormals of float32, and of types that are computed in it.
    """
    import torch

    return torch.finfo(getattr(torch, dtype)).tiny if dtype in ("float32", "bfloat16") else 0.0


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
    """Return a sentence about an output whose errors point one way in most rows; empty without one.

    An honest kernel may round a factor of a row, which moves the row's results one way or the other. It does not
    move three quarters of the rows the same way.

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
        for direction, means in _mean_errors(outputs[name], expected[name], dtype):
            if _err_alike(means):
                return (
                    f"{name} is rounded {direction}: the mean error of half of its rows is "
                    f"{float(means.median()):.2f} units in the last place or more; round to the nearest number"
                )
        for direction, means in _mean_errors_of_short_rows(outputs[name], expected[name], dtype):
            if _is_far_from_zero(means):
                return (
                    f"{name} is rounded {direction}: the mean error of its rows is {float(means.mean()):.2f} "
                    "units in the last place; round to the nearest number"
                )
    return ""


def _err_alike(means: torch.Tensor) -> bool:
    """Return True if the errors of most rows point in a direction; factors that rows are rounded by do not."""
    low, middle, high = means.quantile(means.new_tensor([0.25, 0.5, 0.75])).tolist()
    return bool(middle > gate_rules.TRUNCATION_ULPS and low > 0 and high > 0)


def _is_far_from_zero(means: torch.Tensor) -> bool:
    """Return True if the mean of rows' errors is no scatter: rows of few results err either way by themselves."""
    mean, deviation = float(means.mean()), float(means.std()) / len(means) ** 0.5
    return mean > gate_rules.TRUNCATION_ULPS and mean > _DEVIATIONS * deviation


def _mean_errors(output: torch.Tensor, expected: torch.Tensor, dtype: DType) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each direction with the mean errors of rows in it, in units in the last place.

    Rows are those of the output if it has enough of them, else pieces of it; a small output has none. A value that
    a row has many times counts once there: ties are rounded alike, and in all rows.
    """
    value, result = (tensor.flatten()[: input_rules.NEAR_ELEMENTS] for tensor in (expected, output))
    width = expected.shape[-1] if expected.ndim > 1 else 0
    if width < gate_rules.TRUNCATION_VALUES or value.numel() // width < gate_rules.TRUNCATION_ROWS:
        width = gate_rules.TRUNCATION_PIECE
    rows = value.numel() // width
    value, result = (tensor[: rows * width].view(rows, width) for tensor in (value, result))
    errors, counted = _count_errors(value, result, dtype, is_first=_mark_first(value))
    yield from _by_direction(value, errors, counted, gate_rules.TRUNCATION_VALUES, gate_rules.TRUNCATION_ROWS)


def _mean_errors_of_short_rows(
    output: torch.Tensor, expected: torch.Tensor, dtype: DType
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each direction with the mean errors of short rows in it, in units in the last place, such as those of
    one result each; none for an output of which `_mean_errors` tells enough.

    A value that an output has many times counts once.
    """
    width = expected.shape[-1] if expected.ndim > 1 else 1
    most = gate_rules.TRUNCATION_ROWS * gate_rules.TRUNCATION_PIECE
    if not 0 < width < gate_rules.TRUNCATION_VALUES or expected.numel() >= most:
        return
    value, result = (tensor.reshape(-1, width) for tensor in (expected, output))
    is_first = _mark_first(value.reshape(1, -1)).view_as(value)
    errors, counted = _count_errors(value, result, dtype, is_first=is_first)
    yield from _by_direction(value, errors, counted, 1, _SHORT_ROWS)


def _mark_first(value: torch.Tensor) -> torch.Tensor:
    """Mark one of the elements of each row that are equal."""
    order = value.argsort(-1)
    ordered = value.gather(-1, order)
    is_first = ordered[:, 1:] != ordered[:, :-1]
    return is_first.new_ones(value.shape).scatter_(-1, order[:, 1:], is_first)


def _count_errors(
    value: torch.Tensor, result: torch.Tensor, dtype: DType, *, is_first: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return errors in units in the last place, 0 where none counts, and which of them count.

    An error is the distance from the number that is nearest to the reference: where the results of a row are
    nearly the same, right ones lie all above the reference, or all below it.
    """
    nearest = value.to(result.dtype).double()
    counted = nearest.isfinite() & (value.abs() * dtype.unit_roundoff > dtype.smallest_subnormal) & is_first
    errors = (result.double() - nearest) / number_spacing(value, dtype)
    return errors.nan_to_num().masked_fill_(~counted, 0.0), counted


def _by_direction(
    value: torch.Tensor, errors: torch.Tensor, counted: torch.Tensor, least_values: int, least_rows: int
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield each direction with the mean errors of the rows in which enough count; none with too few rows."""
    counts = counted.sum(-1)
    telling = counts >= least_values
    if int(telling.sum()) < least_rows:
        return
    upward = errors.sum(-1)[telling] / counts[telling]
    outward = (errors * value.nan_to_num().sign()).sum(-1)[telling] / counts[telling]
    yield from (("toward zero", -outward), ("away from zero", outward), ("down", -upward), ("up", upward))
