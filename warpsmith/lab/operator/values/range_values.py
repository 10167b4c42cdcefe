"""Values with structure in the declared range of an input, which other adversarial distributions would leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.lab.operator import input_rules

if TYPE_CHECKING:
    import torch

Limits = tuple[float, float]
"""Least and largest value that a draw of an input may give."""

_FORMS = 11
"""Forms of a row."""
_ZEROS = (8, 9)
"""Forms of a row that hold zeros."""
_MOSTLY, _EVEN = 4, 2
"""A draw of so many goes along any axis; one of so many has values at the limits, or forms that differ by row."""


def arrange_rows(drawn: torch.Tensor, limits: Limits, generator: torch.Generator) -> torch.Tensor:
    """Return other values within limits.

    Each slice along an axis, mostly the last, has by chance one level, or two; the least value, the largest, or
    both; sorted ones; some that are a few roundings from a level, or one level but for an element; zeros in all or
    in some places, if zero is between the limits; or those that were drawn. In every other draw all slices have
    the same form, and in every other one the values at the limits are some that were drawn: a result at a limit
    itself may be infinite.
    """
    import torch

    if not drawn.ndim or not drawn.numel():
        return drawn
    options: dict[str, Any] = {"generator": generator, "device": drawn.device}

    def is_drawn(count: int) -> bool:
        return not int(torch.randint(count, (), **options))

    axis = int(torch.randint(drawn.ndim, (), **options)) if is_drawn(_MOSTLY) else drawn.ndim - 1
    wide = drawn if drawn.itemsize > 2 else drawn.float()
    moved = wide.movedim(axis, -1)
    rows = moved.reshape(-1, moved.shape[-1]).clone()
    kinds = torch.randint(_FORMS, rows.shape[:1], **options)
    kinds = kinds[:1].expand(kinds.shape) if is_drawn(_EVEN) else kinds
    ends = limits if is_drawn(_EVEN) else (float(wide.flatten()[0]), float(wide.flatten()[-1]))
    unit = 2 * DTYPES[str(drawn.dtype).removeprefix("torch.")].unit_roundoff
    for kind in range(_FORMS):
        places = (kinds == kind).nonzero().flatten()
        if places.numel() and (kind not in _ZEROS or limits[0] < 0 < limits[1]):
            rows[places] = _arrange(kind, rows[places], ends, unit, generator).clamp(*limits)
    return rows.view(moved.shape).movedim(-1, axis).contiguous().to(drawn.dtype)


def _arrange(kind: int, rows: torch.Tensor, ends: Limits, unit: float, generator: torch.Generator) -> torch.Tensor:
    """Return rows of one form; `unit` is the distance of neighbours from 1."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": rows.device}
    level = rows[:, :1].expand(rows.shape)
    match kind:
        case 0:
            return level
        case 1:
            return torch.full_like(rows, ends[0])
        case 2:
            return torch.full_like(rows, ends[1])
        case 3:
            is_level = torch.rand(rows.shape, **options) < 1 / _EVEN
            return level.where(is_level, rows[:, -1:])
        case 4:
            is_least = torch.rand(rows.shape, **options) < 1 / _EVEN
            return torch.full_like(rows, ends[1]).masked_fill(is_least, ends[0])
        case 5:
            return rows.sort(-1, descending=bool(torch.randint(2, (), **options))).values
        case 6:
            most = input_rules.NEAR_TIE_ULPS
            return level * (1 + torch.randint(-most, most + 1, rows.shape, **options) * unit)
        case 7:
            places = torch.randint(rows.shape[1], (len(rows), 1), **options)
            return level.scatter(-1, places, rows.gather(-1, places))
        case 8:
            return torch.zeros_like(rows)
        case 9:  # of either sign, often several beside each other
            chances = torch.rand(rows.shape, **options) * (1 + torch.rand(rows[:, :1].shape, **options))
            return rows.masked_fill(chances < 0.25, 0.0).masked_fill((chances > 0.25) & (chances < 0.5), -0.0)
        case _:
            return rows
