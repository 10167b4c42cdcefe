"""Content: what a tensor holds, as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor's memory as a flat uint8 tensor; of another one, a copy's.

    One element is contiguous whatever its stride says, and a view of bytes wants 1.
    """
    import torch

    flat = tensor.contiguous().reshape(-1)
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)


def equal_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and type hold the same bytes: NaN equals NaN, and 0.0 is not -0.0."""
    import torch

    return torch.equal(as_bytes(one), as_bytes(other))


def select_bytes(which: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """`torch.where(which, one, other)`, byte by byte: for types that it does not know, and NaN as it is."""
    import torch

    if not which.numel():
        return one
    first, second = (as_bytes(side).view(which.numel(), -1) for side in (one, other))
    mixed = torch.where(which.reshape(-1, 1), first, second)
    return mixed.view(one.dtype).view(one.shape)
