"""Masks: which elements of rows are hidden, as by padding, a causal mask, a window or packed documents."""

from __future__ import annotations

from math import log2, prod
from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator import input_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

MASK_FORMS = 8
"""Number of the forms of a mask."""

PAIR_FORMS = 7
"""Number of the forms of a mask of pairs."""

_PADDED_FORMS = 4
"""Further draws of a row's form that are padding. Chosen: callers pad more often than they do anything else."""

_ROW_DRAWS = 8
"""Draws, of those of all forms, whose rows each have a form of their own. One call meets most forms then."""


def mask_part(
    values: torch.Tensor, axis: int, generator: torch.Generator, mask: float = float("-inf")
) -> torch.Tensor:
    """Put minus infinity, or another number, in a part of each slice along an axis, in one form for all slices."""
    import torch

    rows = values.movedim(axis, -1)
    form = torch.randint(MASK_FORMS, (), generator=generator, device=values.device)
    return rows.masked_fill(draw_mask(rows.shape, int(form), generator), mask).movedim(-1, axis)


def mask_rows(
    values: torch.Tensor, means: Sequence[float], lowest: float, generator: torch.Generator
) -> torch.Tensor:
    """Give each slice along an axis one of the means, and a mask that half of them share with their neighbors.

    In three draws of four it is the last axis. Finite values are at least `lowest`.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": values.device}
    is_last = bool(torch.randint(4, (), **options))
    axis = values.ndim - 1 if is_last else int(torch.randint(values.ndim, (), **options))
    moved = values.movedim(axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    kinds = torch.randint(len(means), (rows.shape[0], 1), **options)
    rows = (rows + torch.tensor(means, dtype=values.dtype, device=values.device)[kinds]).clamp_(min=lowest)
    runs = _draw_runs(rows.shape[0], generator)
    forms = torch.randint(MASK_FORMS, (int(runs[-1]) + 1,), **options)
    for form in range(MASK_FORMS):
        is_form = forms == form
        chosen = is_form[runs].nonzero().flatten()
        if chosen.numel():
            masks = draw_mask((int(is_form.sum()), rows.shape[1]), form, generator)
            places = (is_form.cumsum(0) - 1)[runs[chosen]]
            rows[chosen] = rows[chosen].masked_fill_(masks[places], float("-inf"))
    return rows.reshape(moved.shape).movedim(-1, axis)


def _draw_runs(count: int, generator: torch.Generator) -> torch.Tensor:
    """Return the number of the run that each of some rows is in.

    Half of the rows are runs of their own, and half are in long ones, as queries share the padding of their keys.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    length = input_rules.MASK_RUN
    is_long = torch.rand(count, **options) < 1 / (length + 1)
    lengths = torch.ones(count, dtype=torch.long, device=generator.device).masked_fill_(is_long, length)
    return torch.arange(count, device=generator.device).repeat_interleave(lengths)[:count]


def draw_mask(shape: Sequence[int], form: int, generator: torch.Generator) -> torch.Tensor:
    """Return which elements of rows of a shape a mask hides; at least one element of each row is left.

    By its form, that is the beginning or the end, in half of the rows half of them; a part that grows from row to
    row, as under a causal mask; all but one element, or every element by chance; all but a window, as in a padded
    or packed row, or a hole in it; or blocks by chance.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    length, places = shape[-1], torch.arange(shape[-1], device=generator.device)
    slices = (*shape[:-1], 1)
    match form:
        case 0 | 1:
            drawn = (torch.rand(slices, **options) * length).long().clamp_(max=length - 1)
            hidden = drawn.where(torch.rand(slices, **options) < 0.5, length // 2)
            return places < hidden if form == 0 else places >= length - hidden
        case 2:
            lengths = torch.arange(shape[-2] if len(shape) > 1 else 1, device=generator.device).unsqueeze(-1)
            return (places > lengths % length).expand(tuple(shape)) if len(shape) > 1 else (places > 0)
        case 5 | 6:  # of a length that is as often short as long
            most = length if form == 5 else length - 1
            sizes = torch.exp2(torch.rand(slices, **options) * log2(most + 1)).long().clamp_(max=most)
            starts = (torch.rand(slices, **options) * (length - sizes + 1)).long().minimum(length - sizes)
            is_inside = (places >= starts) & (places < starts + sizes)
            return ~is_inside if form == 5 else is_inside
        case 7:
            block = 1 << int(torch.randint(max(length.bit_length() - 2, 1), (), **options))
            chances = torch.rand((*shape[:-1], -(-length // block)), **options)
            is_hidden = (chances < 0.5) & (chances > chances.amin(-1, keepdim=True))
            return is_hidden[..., places // block]
        case _:
            chances = torch.rand(tuple(shape), **options)
            is_drawn = chances < 0.5 if form == 4 else chances >= 0
            return is_drawn & (chances > chances.amin(-1, keepdim=True))


def draw_booleans(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Return a mask along the last two axes, such as of queries and keys.

    It has one of the forms of `draw_mask`, in all rows or by chance in each, or one of those of `draw_pairs`. Half
    of the draws differ from their form in a few elements, and three quarters of those where each row has a form of
    its own. By chance True is what the mask hides or what it leaves.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    count = MASK_FORMS + PAIR_FORMS + _ROW_DRAWS
    form, is_left, turn = (int(torch.randint(most, (), **options)) for most in (count, 2, 4))
    has_exceptions = turn < (3 if form >= MASK_FORMS + PAIR_FORMS else 2)
    if form < MASK_FORMS:
        mask = draw_mask(shape, form, generator).clone()
    elif form < MASK_FORMS + PAIR_FORMS:
        mask = ~draw_pairs(shape, form - MASK_FORMS, generator)
    else:
        mask = _draw_row_masks(shape, generator)
    mask = place_exceptions(mask, ~mask, generator) if has_exceptions else mask
    return ~mask if is_left else mask


def _draw_row_masks(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Return a mask whose rows each have one of the forms of `draw_mask` by chance, most often padding."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    forms = torch.randint(MASK_FORMS + _PADDED_FORMS, (prod(shape[:-1]),), **options)
    forms = torch.where(forms < MASK_FORMS, forms, forms % 2)  # a beginning or an end
    mask = torch.zeros((len(forms), shape[-1]), dtype=torch.bool, device=generator.device)
    for form in range(MASK_FORMS):
        rows = (forms == form).nonzero().flatten()
        if rows.numel():
            mask[rows] = draw_mask((len(rows), shape[-1]), form, generator)
    return mask.view(tuple(shape))


def draw_pairs(shape: Sequence[int], form: int, generator: torch.Generator) -> torch.Tensor:
    """Return which pairs along the last two axes belong together.

    By its form, those are a band beside the diagonal, or what is before it in such a band; blocks on the diagonal,
    or what is before it in them; distances that are multiples of a step, before the diagonal or also behind it; or
    all before the diagonal, which is among them.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    above, along = (torch.arange(size, device=generator.device) for size in shape[-2:])
    distance = above.unsqueeze(-1) - along
    width = int(torch.exp2(torch.rand((), **options) * log2(max(*shape[-2:], 2))))
    match form:
        case 0:
            visible = distance.abs() < width
        case 1:
            visible = distance < width
        case 2 | 3:
            starts = (torch.rand(max(shape[-2:]), **options) < 1 / width).cumsum(0)
            visible = starts[above].unsqueeze(-1) == starts[along]
        case 4 | 5:
            visible = distance % max(width, 2) == 0
        case _:
            visible = distance >= 0
    if form in (1, 3, 5):
        visible = visible & (distance >= 0)
    return visible.expand(tuple(shape)).clone()


def draw_some_pairs(shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Return pairs of a form that is drawn by chance, in half of the draws but for a few exceptions."""
    import torch

    form, has_exceptions = (
        int(torch.randint(most, (), generator=generator, device=generator.device)) for most in (PAIR_FORMS, 2)
    )
    pairs = draw_pairs(shape, form, generator)
    return place_exceptions(pairs, ~pairs, generator) if has_exceptions else pairs


def place_exceptions(values: torch.Tensor, others: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Put elements of another tensor at one to three places of some rows, one after the other in half of them.

    The values change in place where they are contiguous. The rows are one, all of them or any number between, by
    its logarithm: who looks at a sample sees no exception.
    """
    import torch

    if not values.ndim or not values.numel():
        return values
    options: dict[str, Any] = {"generator": generator, "device": values.device}
    rows, length = values.reshape(-1, values.shape[-1]), values.shape[-1]
    chosen = int(torch.exp2(torch.rand((), **options) * log2(len(rows) + 1)))
    places = torch.randint(length, (len(rows), min(input_rules.EXCEPTIONS, length)), **options)
    steps = torch.arange(places.shape[1], device=values.device)
    is_run = torch.rand((len(rows), 1), **options) < 0.5
    places = places.where(~is_run, (places[:, :1] + steps) % length)
    is_used = steps < torch.randint(1, len(steps) + 1, (len(rows), 1), **options)
    is_used &= (torch.randperm(len(rows), **options) < chosen).unsqueeze(-1)
    replaced = others.reshape(rows.shape).gather(1, places).where(is_used, rows.gather(1, places))
    return rows.scatter_(1, places, replaced).view(values.shape)


def place_sentinel(drawn: torch.Tensor, number: int, generator: torch.Generator) -> torch.Tensor:
    """Return integers a few of which are the number, or a part of them, as padded labels are; few tensors stay as
    they are."""
    import torch

    if drawn.numel() < input_rules.SENTINEL_ELEMENTS:
        return drawn
    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    if drawn.ndim and int(torch.randint(2, (), **options)):
        form = int(torch.randint(MASK_FORMS, (), **options))
        return drawn.masked_fill(draw_mask(drawn.shape, form, generator), number)
    return drawn.masked_fill(torch.rand(drawn.shape, **options) < input_rules.SENTINEL_SHARE, number)
