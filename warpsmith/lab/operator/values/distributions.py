"""Distributions of floating-point inputs, and what turns normal values into them."""

from __future__ import annotations

from math import inf, log2
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import computable
from warpsmith.lab.operator.values.masks import draw_some_pairs, mask_part, mask_rows, place_exceptions

if TYPE_CHECKING:
    import torch

ADVERSARIAL = (
    "large", "tiny", "shifted", "lowered", "constant", "scaled_rows", "sorted", "denormal", "sparse", "one_hot",
    "near_tie", "wide", "heavy_end", "far", "huge", "repeated", "lowest", "ones",
    "balanced", "runs", "faint", "periodic",
    "patterned",
)  # fmt: skip
"""Further distributions for correctness; one applies if the reference itself stays within its bound there."""

REPLACEABLE = ("workload", "normal")
"""Distributions of floating-point inputs in whose place others may stand."""

MASKED = "masked"
"""Distribution with minus infinity in a part of the last axis, never in all of it."""

MASKED_ALONG = "masked_along"
"""The same along any axis, by chance: the results are finite where that is the axis of a sum or maximum."""

MASKED_ROWS = "masked_rows"
"""Distribution whose slices along an axis, most often the last one, each have a mask of their own over values near
zero, far above it or far below it: one call at a large shape meets them all."""

PADDED_ROWS = "padded_rows"
"""The same over values near zero, and over rows as low as finite masks make them, which hide padding."""

MASKED_PAIRS = "masked_pairs"
"""Distribution of one input, zero or normal in a pattern of pairs along the last two axes, and minus infinity
elsewhere: an additive mask that is causal, a band, blocks or steps, or nearly so."""

PATTERNED = "patterned"
"""Distribution that is one or normal in such a pattern, and zero elsewhere, as weights of a graph are. In half of
the draws a square is symmetric, or its rows are shifts of each other, most often but for a few elements."""

MIXED_ROWS = "mixed_rows"
"""Distribution whose rows, along an axis, each have one of `ADVERSARIAL` by chance: one call at a large shape
meets them all but `UNMIXED`."""

REPEATED = "repeated"
"""Distribution whose slices along an axis are alike but for an element of each, which is much larger."""

MASKED_ABOVE = "masked_above"
"""Distribution with infinity in a part of the last axis, never in all of it: a minimum leaves it out."""

RELATED_INPUTS = "related_inputs"
"""Distribution of a whole call: inputs of one type hold each other's values."""

IN_RANGE = "in_range"
"""Distribution of a whole call: inputs with a declared range hold rows of few levels, at its ends or sorted."""

FULL = "full"
"""Distribution of a whole call: each input of integers holds one, by chance the largest that was drawn."""

IGNORED = "ignored"
"""Distribution of a whole call: each integer that may be a number of the call, as padded labels may, is it."""

OTHER_SIGNS = "other_signs"
"""Distribution of a whole call: inputs that have a mean and a deviation, such as weights near one, are negative or
zero at some places, in another scale by chance."""

HUGE = "huge"
"""Distribution whose sums are within a type, but not all of its products."""

ALONE = ("lowest",)
"""Distributions at the end of a type: one input of a call has them, since sums of two would overflow."""

MASKS_BELOW = (MASKED, MASKED_ALONG, MASKED_ROWS, PADDED_ROWS, MASKED_PAIRS)
"""Distributions with minus infinity in a part of an input."""

MASKS = (*MASKS_BELOW, MASKED_ABOVE)
"""Distributions with an infinity in a part of an input."""

FINITE = (*MASKS, IN_RANGE, IGNORED, OTHER_SIGNS, *ALONE)
"""Distributions that count where all results are finite."""

REGULAR = ("sorted", "constant", "runs")
"""Distributions of which half of the draws have a few exceptions, which nobody sees by a sample."""

UNMIXED = ("denormal", "faint", HUGE, *ALONE)
"""Distributions that are not mixed with others: intermediate results may be flushed to zero, or overflow."""

DISTRIBUTIONS = ("normal", "uniform", *MASKS, "nonfinite", *ADVERSARIAL, MIXED_ROWS)
"""Distributions of floating-point inputs; `nonfinite` has NaN and infinities in some rows."""


def shape_values(name: str, values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Turn normal values into another distribution, in which regular ones may have exceptions; `dtype` is the type
    that they are rounded to afterwards."""
    import torch

    shaped = _shape_all(name, values, dtype, generator)
    if name not in REGULAR or int(torch.randint(2, (), generator=generator, device=values.device)):
        return shaped
    return place_exceptions(shaped, values, generator)


def _shape_all(name: str, values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Turn normal values into another distribution without exceptions."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    match name:
        case "uniform":
            return torch.rand(values.shape, **options)
        case "large":
            values = values * input_rules.LARGE_FACTOR
            return (2 * values).round() / 2 if int(torch.randint(2, (), **options)) else values  # halves are ties
        case "tiny":
            return values * input_rules.TINY_FACTOR
        case "shifted":
            return values + input_rules.SHIFT
        case "far":  # A variance cancels here unless the mean is subtracted first.
            return values + input_rules.FAR_SHIFT
        case "lowered":  # Exponentials underflow here unless they are shifted, or are too small for a guard.
            halvings = max(0, int(torch.randint(6, (), **options)) - 2)
            return values - input_rules.LOWERED_SHIFT / (1 << halvings)
        case "constant" if values.numel():  # every third is 1 or -1, as weights begin
            constants = (float(values.flatten()[0]), 1.0, -1.0)
            return torch.full_like(values, constants[max(0, int(torch.randint(6, (), **options)) - 3)])
        case "ones" if int(torch.randint(2, (), **options)):
            return place_exceptions(torch.ones_like(values), torch.zeros_like(values), generator)
        case "ones":  # a mask of which samples may all be 1
            return (torch.rand(values.shape, **options) >= input_rules.HOLES_SHARE).to(values.dtype)
        case "scaled_rows" if values.ndim:
            rows = (values.shape[0],) + (1,) * (values.ndim - 1)
            powers = torch.randint(
                -input_rules.SCALED_ROW_EXPONENT, input_rules.SCALED_ROW_EXPONENT, rows, **options
            )
            return values * torch.exp2(powers.to(values.dtype))
        case "masked" if values.ndim and values.numel():
            return mask_part(values, -1, generator)
        case "masked_along" if values.ndim and values.numel():
            return mask_part(values, int(torch.randint(values.ndim, (), **options)), generator)
        case "masked_above" if values.ndim and values.numel():
            return mask_part(values, -1, generator, inf)
        case "masked_rows" if values.ndim and values.numel():
            shifts = (0, -input_rules.LOWERED_SHIFT, input_rules.FAR_SHIFT)
            return mask_rows(values, shifts, torch.finfo(getattr(torch, dtype)).min, generator)
        case "padded_rows" if values.ndim and values.numel():
            lowest = torch.finfo(getattr(torch, dtype)).min
            means = (0.0, max(-input_rules.PADDED_SHIFT, lowest / 2), lowest)
            return mask_rows(values, means, lowest, generator)
        case "sorted" if values.ndim:
            ordered = values.sort(dim=-1, descending=bool(torch.randint(2, (), **options))).values
            if float(torch.rand((), **options)) < input_rules.TREND_SHARE:  # a trend, of which samples are sorted
                ordered += torch.randn(values.shape, dtype=values.dtype, **options) * input_rules.TREND_NOISE
            return ordered
        case "denormal":
            smallest = torch.finfo(getattr(torch, dtype)).tiny
            signed = torch.rand(values.shape, dtype=torch.float64, **options).mul_(2).sub_(1) * smallest
            return signed * torch.randint(2, values.shape, **options)
        case "wide" if values.numel():  # an exponent for the whole input, as far as the type goes
            most = input_rules.WIDE_EXPONENT
            exponent = int(torch.randint(-2 * most, 2 * most + 1, (), **options))
            exponent = max(-most, min(exponent, most))  # every other draw is an end of the range
            room = torch.finfo(getattr(torch, dtype)).max / max(float(values.abs().max()), 1.0)
            return values * 2.0 ** min(exponent, int(log2(room)))
        case "huge" if values.numel():  # not so large that a sum of them overflows
            return values * 2.0 ** int(input_rules.HUGE_SHARE * log2(torch.finfo(getattr(torch, dtype)).max))
        case "faint":  # a kernel that guards against overflow alone loses the squares of them
            return values * 2.0 ** int(input_rules.FAINT_SHARE * log2(torch.finfo(getattr(torch, dtype)).tiny))
        case "lowest" if values.ndim and values.numel():
            lowest = torch.finfo(getattr(torch, dtype)).min
            filled = torch.rand((*values.shape[:-1], 1), **options) < input_rules.LOWEST_ROWS
            filled.view(-1)[int(torch.randint(filled.numel(), (), **options))] = True
            return mask_part(values, -1, generator, lowest).masked_fill(filled, lowest)
        case "heavy_end" if values.ndim and values.numel():  # who leaves out a tail, leaves out most of a sum
            room = (log2(torch.finfo(getattr(torch, dtype)).max) - 2) / values.ndim  # ends meet in a corner
            for axis, size in enumerate(values.shape):
                count = min(int(torch.randint(1, input_rules.HEAVY_END + 1, (), **options)), size)
                values.narrow(axis, size - count, count).mul_(min(input_rules.HEAVY_FACTOR, 2.0**room))
            return values
        case "masked_pairs" if values.ndim > 1 and values.numel():
            return _shape_pairs(values, 0.0, 1 - input_rules.PLAIN_PAIRS, -inf, generator)
        case "masked_pairs" if values.ndim and values.numel():
            return mask_part(values, -1, generator)
        case "patterned" if _is_square(values) and int(torch.randint(2, (), **options)):
            return _relate_rows(values, generator)
        case "patterned" if values.ndim > 1 and values.numel():
            return _shape_pairs(values, 1.0, input_rules.PLAIN_PAIRS, 0.0, generator)
        case "periodic" if values.ndim and values.numel():
            return _raise_period(values, dtype, generator)
        case "repeated" if values.ndim and values.numel():
            return _repeat_slice(values, dtype, generator)
        case "balanced" if values.ndim:  # each row has a sum of zero: every value comes with its negative
            half = values.shape[-1] // 2
            order = torch.randperm(2 * half, **options)
            values[..., : 2 * half] = torch.cat([values[..., :half], -values[..., :half]], -1)[..., order]
            values[..., 2 * half :] = 0
            return values
        case "runs" if values.ndim and values.numel():
            length = 1 << int(torch.randint(1, input_rules.RUN_VALUES + 1, (), **options))
            places = torch.arange(values.shape[-1], device=values.device)
            return values[..., places.div_(length, rounding_mode="floor").mul_(length)]
        case "sparse":  # a row of zeros, as of padding, has no length to divide by
            rows = (*values.shape[:-1], 1) if values.ndim else ()
            is_used = torch.rand(rows, **options) >= input_rules.ZERO_ROWS
            return values * (is_used & (torch.rand(values.shape, **options) < input_rules.SPARSE_SHARE))
        case "one_hot" if values.ndim and values.numel():
            hot = torch.randint(values.shape[-1], (*values.shape[:-1], 1), **options)
            single = torch.zeros_like(values).scatter_(-1, hot, values.gather(-1, hot))
            return single.where(torch.randint(2, hot.shape, **options) > 0, _keep_ends(values, generator))
        case "near_tie" if values.ndim and values.numel():
            ulps = torch.randint(
                -input_rules.NEAR_TIE_ULPS, input_rules.NEAR_TIE_ULPS + 1, values.shape, **options
            )
            common = values[..., :1].to(getattr(torch, dtype)).double()
            return common * (1 + ulps * (2 * DTYPES[dtype].unit_roundoff))
        case "nonfinite" if values.ndim and values.numel():
            return _nonfinite(values, generator)
        case "mixed_rows" if values.ndim and values.numel():
            return _mix_rows(values, dtype, generator)
        case _:
            return values


def _keep_ends(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return rows that are zero but for the first or the last place of each block: few blocks, as long as a power
    of two, so that a sum which lacks one is far off."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    length = values.shape[-1]
    most = max(length.bit_length() - 1, 1)
    power = int(torch.randint(max(most - input_rules.END_BLOCKS, 0), most, (), **options))
    places = torch.arange(length, device=values.device) + torch.randint(2, (), **options)
    return values.masked_fill(places.remainder_(1 << power) != 0, 0)


def _shape_pairs(
    values: torch.Tensor, within: float, share: float, beyond: float, generator: torch.Generator
) -> torch.Tensor:
    """Put a number beyond a pattern of pairs, and another one within it in a share of the draws; a row without a
    pair holds pairs alone."""
    import torch

    pairs = draw_some_pairs(values.shape, generator)
    pairs |= ~pairs.any(-1, keepdim=True)
    if float(torch.rand((), generator=generator, device=values.device)) < share:
        values = torch.full_like(values, within)
    return values.masked_fill(~pairs, beyond)


def _is_square(values: torch.Tensor) -> bool:
    return values.ndim > 1 and values.shape[-2] == values.shape[-1] > 1


def _relate_rows(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return squares that are symmetric, or whose rows are each the one before, shifted or rotated by one; in
    three draws of four but for a few elements."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    form, is_whole = (int(torch.randint(most, (), **options)) for most in (3, 4))
    length = values.shape[-1]
    places = torch.arange(length, device=values.device)
    shifts = places - places.unsqueeze(-1)  # of each column against its row
    if form == 0:
        related = torch.where(shifts < 0, values.mT, values)
    else:
        sources = shifts % length if form == 1 else shifts + length - 1
        related = values.flatten(-2)[..., sources.flatten()].view(values.shape)
    return related if is_whole == 0 else place_exceptions(related.contiguous(), values, generator)


def _raise_period(values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Make one element of each period along an axis, most often the last one, larger, as a hot channel is.

    Each slice has a period of its own, a power of two or a half or a quarter of the axis, and one sign for those
    elements: a lane that strides by it meets them all.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    is_last = bool(torch.randint(4, (), **options))
    axis = values.ndim - 1 if is_last else int(torch.randint(values.ndim, (), **options))
    rows = values.movedim(axis, -1)
    length, slices = rows.shape[-1], (*rows.shape[:-1], 1)
    powers = torch.randint(1, max(length.bit_length(), 2), slices, **options)
    parts = (length >> torch.randint(1, 3, slices, **options)).clamp_(min=1)
    is_part = torch.rand(slices, **options) < input_rules.PART_PERIODS
    periods = parts.where(is_part, 1 << powers)
    phases = (torch.rand(slices, **options) * periods).long()
    places = torch.arange(length, device=values.device)
    largest = torch.finfo(getattr(torch, dtype)).max / max(float(values.abs().max()), 1.0)
    signs = 2 * torch.randint(2, slices, **options) - 1
    raised = rows.abs() * (signs * min(input_rules.HEAVY_FACTOR, largest))
    return rows.where(places % periods != phases, raised).movedim(-1, axis)


def _repeat_slice(values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Repeat the first slice along an axis, drawn by chance and seldom the last; in a vector, the first element.

    In three draws of four each slice gets an element that rules a sum over it, at a place and of a size of its
    own.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    axis = int(torch.randint(2 * values.ndim - 1, (), **options)) // 2
    slices = values.movedim(axis, 0)
    repeated = slices[:1].expand(slices.shape).clone(memory_format=torch.contiguous_format)
    if int(torch.randint(4, (), **options)):
        flat = repeated.view(slices.shape[0] if values.ndim > 1 else 1, -1)
        largest = 2.0 ** (input_rules.HUGE_SHARE * log2(torch.finfo(getattr(torch, dtype)).max))
        ruling = float(flat[0].abs().max()) * max(input_rules.HEAVY_FACTOR, flat.shape[1] ** 0.5)
        places = torch.randint(flat.shape[1], (flat.shape[0], 1), **options)
        sizes = torch.rand(places.shape, **options).mul_(min(ruling, largest))
        flat.scatter_(1, places, sizes.to(flat.dtype))
    return repeated.movedim(0, axis)


def _mix_rows(values: torch.Tensor, dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Give each slice along an axis, drawn by chance, one of the adversarial distributions; in a vector, each
    element."""
    import torch

    axis = int(torch.randint(values.ndim, (), generator=generator, device=values.device))
    values = values.movedim(axis, 0)
    names = [name for name in ADVERSARIAL if name not in UNMIXED]
    kinds = torch.randint(len(names), values.shape[:1], generator=generator, device=values.device)
    for kind, name in enumerate(names):
        rows = (kinds == kind).nonzero().flatten()
        if rows.numel():
            values[rows] = shape_values(name, values[rows], dtype, generator).to(values.dtype)
    return values.movedim(0, axis)


def _nonfinite(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put NaN, infinity or minus infinity at one to three elements of about half of the rows, and of at least one.

    In a vector, every element is a row.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    rows = values.view(-1, values.shape[-1] if values.ndim > 1 else 1)
    count, width = rows.shape
    most = min(input_rules.EXCEPTIONS, width)
    is_used = torch.rand((count, 1), **options) < input_rules.NONFINITE_ROWS
    is_used[torch.randint(count, (), **options)] = True
    is_used = is_used & (
        torch.arange(most, device=values.device) < torch.randint(1, most + 1, (count, 1), **options)
    )
    specials = torch.tensor([float("nan"), inf, -inf], dtype=values.dtype, device=values.device)
    chosen = specials[torch.randint(3, (count, most), **options)]
    steps = torch.randint(1, width // most + 1, (count, 1), **options)
    columns = (
        torch.randint(width, (count, 1), **options) + steps * torch.arange(most, device=values.device)
    ) % width
    rows.scatter_(1, columns, chosen.where(is_used, rows.gather(1, columns)))
    return values


def vary_nan_bits(name: str, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Give each NaN of a `nonfinite` input the bits of one by chance: with either sign, as x86 makes it, and with
    all bits of its fraction set or one, as GPUs and libraries make it."""
    import torch

    if name != "nonfinite" or not tensor.numel():
        return tensor
    bits = tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.itemsize])
    sign, fraction = torch.iinfo(bits.dtype).min, round(1 / torch.finfo(tensor.dtype).eps) - 1
    exponent = int(torch.tensor(float("nan")).to(tensor.dtype).view(bits.dtype)) & ~(sign | fraction)
    fractions = (exponent | (fraction + 1) // 2, exponent | fraction)
    forms = torch.tensor(
        [*fractions, *(sign | each for each in fractions)], dtype=bits.dtype, device=tensor.device
    )
    forms = forms[computable(forms.view(tensor.dtype)).isnan()]  # a type without infinities has but two
    chosen = forms[torch.randint(len(forms), tensor.shape, generator=generator, device=tensor.device)]
    return torch.where(computable(tensor).isnan(), chosen, bits).view(tensor.dtype)
