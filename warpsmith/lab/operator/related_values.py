"""Values with structure: integers that are alike or regular, and inputs that hold values of another one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import as_bytes, computable, select_bytes

if TYPE_CHECKING:
    import torch


def order_integers(drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return other integers between the least and the largest one that were drawn.

    By chance they are one integer everywhere, the least, the largest, mostly the one nearest to zero, sorted, near
    each other, multiples of a power of two, in runs of equal ones, one integer but for a few, or two integers in a
    half of the places each.
    """
    import torch

    options: dict[str, Any] = {"generator": generator, "device": drawn.device}
    least, most = int(drawn.min()), int(drawn.max())
    match int(torch.randint(10, (), **options)):
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
            descending = bool(torch.randint(2, (), **options))
            return drawn.flatten().sort(descending=descending).values.view(drawn.shape)
        case 5:
            span = min(1 << int(torch.randint(1, input_rules.NEAR_INTEGERS + 1, (), **options)), most - least)
            first = min(int(drawn.flatten()[0]), most - span)
            return torch.randint(span + 1, drawn.shape, **options).add_(first)
        case 6:
            return _draw_multiples(drawn, least, most, generator)
        case 7:
            values = torch.full_like(drawn, int(drawn.flatten()[0])).flatten()
            count = min(int(torch.randint(1, input_rules.ALIKE_INTEGERS + 1, (), **options)), values.numel())
            places = torch.randperm(values.numel(), **options)[:count]
            values[places] = drawn.flatten()[places]
            return values.view(drawn.shape)
        case 8:
            pair = drawn.flatten()[torch.randint(drawn.numel(), (2,), **options)]
            halves = torch.arange(drawn.numel(), device=drawn.device) * 2 >= drawn.numel()
            return pair[halves.long()].view(drawn.shape)
        case _:
            length = 1 << int(torch.randint(1, input_rules.RUN_INTEGERS + 1, (), **options))
            places = torch.arange(drawn.numel(), device=drawn.device).div_(length, rounding_mode="floor")
            return drawn.flatten()[places].view(drawn.shape)


def fill_integers(drawn: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return one integer everywhere: by chance the largest that was drawn, or the first."""
    import torch

    if not drawn.numel():
        return drawn
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
