"""Values with structure: integers that fit each other, are alike or regular, and inputs with values of another."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import as_bytes, computable, select_bytes
from warpsmith.lab.operator.values.masks import place_exceptions

if TYPE_CHECKING:
    import torch


MOST = (1 << 63) - 1
"""Largest number of 64 bits."""


def order_integers(drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return other integers between the least and the largest one that were drawn.

    They have one of the structures of `_shape_integers` by chance; in three draws of four but for a few, which
    nobody sees by a sample.
    """
    import torch

    shaped = _shape_integers(drawn, generator)
    if not int(torch.randint(4, (), generator=generator, device=drawn.device)):
        return shaped
    return place_exceptions(shaped.clone(), drawn, generator)


def _shape_integers(drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return integers of one structure in the range of what was drawn.

    By chance they are one integer everywhere, the least, the largest, mostly the one nearest to zero, near each
    other, near zero, multiples of a power of two, in runs of equal ones, two integers in a half of the places
    each, the same sequence again and again, or a progression, in all or along the last axis. They are more often
    near zero, sequences and progressions, and sorted most often.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    least, most = int(drawn.min()), int(drawn.max())
    match int(torch.randint(17, (), **options)):
        case 0:
            return torch.full_like(drawn, int(drawn.flatten()[0]))
        case 1:
            return torch.full_like(drawn, least)
        case 2:
            return torch.full_like(drawn, most)
        case 3:
            rest = max(least, min(most, 0))
            return drawn.masked_fill(torch.rand(drawn.shape, **options) >= input_rules.SPARSE_SHARE, rest)
        case 4:
            span = min(1 << int(torch.randint(1, input_rules.NEAR_INTEGERS + 1, (), **options)), most - least)
            first = min(int(drawn.flatten()[0]), most - span)
            return torch.randint(span + 1, drawn.shape, **options).add_(first)
        case 5 | 11:
            return _draw_narrow(drawn, least, most, generator)
        case 6:
            return _draw_multiples(drawn, least, most, generator)
        case 7:
            pair = drawn.flatten()[torch.randint(drawn.numel(), (2,), **options)]
            halves = torch.arange(drawn.numel(), device=drawn.device) * 2 >= drawn.numel()
            return pair[halves.long()].view(drawn.shape)
        case 8 | 12:
            return _draw_progression(drawn, least, most, generator)
        case 9:
            length = 1 << int(torch.randint(1, input_rules.RUN_INTEGERS + 1, (), **options))
            places = torch.arange(drawn.numel(), device=drawn.device).div_(length, rounding_mode="floor")
            return drawn.flatten()[places].view(drawn.shape)
        case 10 | 13:
            count = 1 << int(torch.randint(1, input_rules.SEQUENCES + 1, (), **options))
            period = max(1, drawn.numel() // count)
            return drawn.flatten()[torch.arange(drawn.numel(), device=drawn.device) % period].view(drawn.shape)
        case _:
            descending = bool(torch.randint(2, (), **options))
            return drawn.flatten().sort(descending=descending).values.view(drawn.shape)


def _draw_progression(drawn: torch.Tensor, least: int, most: int, generator: torch.Generator) -> torch.Tensor:
    """Return integers that ascend or descend by a step, most often one, and go on at the other end of a range."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    row = drawn.shape[-1] if drawn.ndim and int(torch.randint(2, (), **options)) else drawn.numel()
    is_one, sign = (int(torch.randint(2, (), **options)) for _ in range(2))
    longest = max(1, min(input_rules.LONGEST_STEP, (most - least) // row))
    step = 1 if is_one else int(torch.randint(1, longest + 1, (), **options))
    places = torch.arange(row, device=drawn.device).mul_(-step if sign else step)
    starts, room = drawn.reshape(-1, row)[:, :1] - least, most - least - (row - 1) * step
    if room >= 0 and int(torch.randint(4, (), **options)):  # most often it does not go on at the other end
        starts = starts.clamp(max=min(room, MOST)) + (row - 1) * step * sign
    return (starts + places).remainder_(min(most - least + 1, MOST)).add_(least).view(drawn.shape)


def _draw_narrow(drawn: torch.Tensor, least: int, most: int, generator: torch.Generator) -> torch.Tensor:
    """Draw integers of a few bits, from zero or with either sign as far as the range has them."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    bits = int(torch.randint(1, max(max(-least, most).bit_length(), 2), (), **options))
    if int(torch.randint(2, (), **options)):  # widths that a version may read numbers in
        bits = input_rules.NARROW_BITS[int(torch.randint(len(input_rules.NARROW_BITS), (), **options))]
    power = 1 << bits
    low, high = max(least, -power), min(most, power - 1)
    if low > high:  # no integer of the range has so few bits
        low, high = least, min(least + power, most)
    return torch.randint(high - low + 1, drawn.shape, **options).add_(low)


def plant_ends(drawn: torch.Tensor, least: int, most: int, generator: torch.Generator) -> torch.Tensor:
    """Return integers, by chance with both ends of their range among them: few draws of a wide range meet one."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    if not drawn.numel() or int(torch.randint(2, (), **options)):
        return drawn
    planted = drawn.clone().flatten()
    planted[torch.randint(drawn.numel(), (2,), **options)] = torch.tensor([least, most], device=drawn.device)
    return planted.view(drawn.shape)


def fill_integers(drawn: torch.Tensor, generator: torch.Generator, end: int | None = None) -> torch.Tensor:
    """Return one integer everywhere: a given one, or by chance the largest that was drawn, or the first."""
    import torch

    if not drawn.numel():
        return drawn
    if end is not None:
        return torch.full_like(drawn, end)
    is_largest = bool(torch.randint(2, (), generator=generator, device=drawn.device))
    return torch.full_like(drawn, int(drawn.max() if is_largest else drawn.flatten()[0]))


def _draw_multiples(drawn: torch.Tensor, least: int, most: int, generator: torch.Generator) -> torch.Tensor:
    """Draw multiples of a power of two in a range, of which many come twice; the tensor itself if none fits."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    power = int(torch.randint(1, max((most - least).bit_length(), 2), (), **options))
    first, last = -(-least >> power), most >> power
    count = min(last - first + 1, max(2, drawn.numel() // 2))
    if count < 1:
        return drawn
    first += int(torch.randint(last - first - count + 2, (), **options))
    return torch.randint(count, drawn.shape, **options).add_(first).mul_(1 << power)


def relate_input(source: torch.Tensor, own: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return values of another input in the shape of an input's own ones, which has the same type.

    Of the same shape they are the same values, by chance with a few of its own among them, a multiple or a
    permutation. Of another shape they are at random places, or the first ones, again and again.
    """
    import torch

    if not source.numel() or not own.numel():
        return own
    options: dict[str, Any] = {"generator": generator, "device": own.device}
    if source.shape != own.shape:
        if int(torch.randint(2, (), **options)):
            return _take(source, torch.randint(source.numel(), own.shape, **options))
        return _take(
            source, torch.arange(own.numel(), device=own.device).remainder_(source.numel()).view(own.shape)
        )
    match int(torch.randint(6, (), **options)):
        case 0:
            return source.clone()
        case 1 if source.is_floating_point():
            factors = input_rules.RELATED_FACTORS
            factor = factors[int(torch.randint(len(factors), (), **options))]
            return (computable(source) * factor).to(source.dtype)
        case 2:
            return _take(source, torch.randperm(source.numel(), **options).view(own.shape))
        case _:
            places = torch.rand(own.shape, **options) < input_rules.SPARSE_SHARE
            return select_bytes(places, own, source)


def _take(source: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the elements at flat places, of any type."""
    values = as_bytes(source).view(-1, source.itemsize)[places.flatten()]
    return values.flatten().view(source.dtype).view(places.shape)


def view_start(source: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the first elements of a contiguous input in another shape, with its memory."""
    return source.flatten()[: prod(shape)].view(shape)


def vary_signs(drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return an input that has a mean, some elements of which are negated or zero, in another scale by chance."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    scales = input_rules.OTHER_SCALES
    chances = torch.rand(drawn.shape, **options)
    factors = torch.full_like(chances, scales[int(torch.randint(len(scales), (), **options))])
    negated = chances < input_rules.NEGATED_SHARE
    factors = torch.where(negated, -factors, factors).masked_fill_(chances >= 1 - input_rules.CLEARED_SHARE, 0)
    return (computable(drawn) * factors).to(drawn.dtype)


def draw_offsets(
    length: int, total: int, generator: torch.Generator, *, are_beginnings: bool = False
) -> torch.Tensor:
    """Draw cut points of `length - 1` groups from 0 to `total`; each draw chooses a new skew of the groups.

    With `are_beginnings`, half of the draws are of `length` groups, whose end is left out: what is behind the last
    cut is one of them.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    if are_beginnings and int(torch.randint(2, (), **options)):
        return draw_offsets(length + 1, total, generator)[:length]
    groups = max(length - 1, 0)
    if groups == 0:
        return torch.zeros(length, dtype=torch.int64, device=generator.device)
    weights = torch.rand(groups, dtype=torch.float64, **options).add_(0.5)
    match int(torch.randint(4, (), **options)):
        case 0:  # balanced, or nearly
            weights = 1 + weights / 8 * torch.randint(2, (), **options)
        case 1:
            ranks = torch.randperm(groups, **options).add_(1)
            weights /= ranks ** (1 + float(torch.rand((), **options)))
        case 2:  # one group with everything
            weights *= torch.arange(groups, device=generator.device) == torch.randint(groups, (), **options)
        case _:  # most groups are empty
            is_used = torch.rand(groups, **options) < 0.1
            is_used[torch.randint(groups, (), **options)] = True
            weights *= is_used
    shares = weights.cumsum(0)
    cuts = (shares / shares[-1] * total).round().long().cummax(0).values.clamp_(max=total)
    cuts[-1] = total
    cuts = torch.cat([cuts.new_zeros(1), cuts])
    if groups > 1 and int(torch.randint(2, (), **options)):  # a group gives an element to its neighbor
        index = int(torch.randint(1, groups, (), **options))
        cuts[index] = torch.minimum(cuts[index] + 1, cuts[index + 1])
    return cuts


def draw_zipf(shape: tuple[int, ...], count: int, generator: torch.Generator) -> torch.Tensor:
    """Draw ids below `count`, of which a few are frequent; each draw chooses new frequent ids and a new skew."""
    import torch

    options: dict[str, Any] = {"generator": generator, "device": generator.device}
    exponent = 0.8 + 0.7 * float(torch.rand((), **options))
    ranks = torch.arange(1, count + 1, dtype=torch.float64, device=generator.device)
    shares = (ranks**-exponent).cumsum(0)
    drawn = torch.rand(shape, dtype=torch.float64, **options) * shares[-1]
    indices = torch.searchsorted(shares, drawn).clamp_(max=count - 1)
    return torch.randperm(count, **options)[indices]


def draw_distinct(shape: tuple[int, ...], count: int, generator: torch.Generator) -> torch.Tensor:
    """Draw ids below `count`, each row in a new order; a row longer than `count` repeats its order."""
    import torch

    length = shape[-1] if shape else 1
    places = torch.rand((prod(shape[:-1]), count), generator=generator, device=generator.device)
    return places.argsort(-1).repeat(1, -(-length // count))[:, :length].reshape(shape)


def order_distinct(drawn: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Return ids below `count` of which none repeats in a row, as far as the count allows.

    By chance they are as they were drawn, ascend from 0 or from the first one, descend, or ascend but for two.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    length = drawn.shape[-1] if drawn.ndim else 1
    first, places = drawn.reshape(-1, length)[:, :1], torch.arange(length, device=drawn.device)
    match int(torch.randint(6, (), **options)):
        case 0:
            ordered = places.expand(len(first), -1)
        case 1:
            ordered = first + places
        case 2:
            ordered = first - places
        case 3 if length > 1:
            order = places.clone()
            pair = torch.randperm(length, **options)[:2]
            order[pair] = order[pair.flip(0)]
            ordered = order.expand(len(first), -1)
        case _:
            return drawn
    return ordered.remainder(count).reshape(drawn.shape)
