"""Bytes of tensors: view, compare and select them; and numbers of 8 bits, which PyTorch only moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """View the memory of a contiguous tensor as a flat uint8 tensor; copy the tensor first if it is not
    contiguous.

    A tensor of one element is contiguous with any stride, but a view of its bytes needs stride 1.
    """
    import torch

    flat = tensor.contiguous().reshape(-1)
    return flat.as_strided(flat.shape, (1,)).view(torch.uint8)


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """Return 8-bit floating-point numbers in float32, because PyTorch does not compute with them, and other
    tensors as they are."""
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def are_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Return True if no number is infinite or NaN; those of 8 bits are not looked at."""
    wide = (each for each in tensors if each.is_floating_point() and each.itemsize > 1)
    return all(bool(each.isfinite().all()) for each in wide)


def equal_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors of one shape and type hold the same bytes; NaN equals NaN, and 0.0 differs
    from -0.0."""
    import torch

    return torch.equal(as_bytes(first), as_bytes(second))


def select_bytes(mask: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return `torch.where(mask, first, second)` byte by byte, for types that it does not support and to
    preserve NaN."""
    import torch

    if not mask.numel():
        return first
    first_bytes, second_bytes = (as_bytes(tensor).view(mask.numel(), -1) for tensor in (first, second))
    mixed = torch.where(mask.reshape(-1, 1), first_bytes, second_bytes)
    return mixed.view(first.dtype).view(first.shape)
