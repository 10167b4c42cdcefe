"""Inputs in pages of their own: read only, with a page that nobody may touch right before or behind each.

A read outside of a tensor or a write to it ends the process there. Tensors that are mapped from files lie so.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

PLACEMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {"end": "end with a page", "start": "begin with a page", "inside": "begin inside a page"}
)
"""Placements of a tensor in its pages, and the words for them; the last one is at `_INSIDE` bytes, or as far
beyond them as the tensor is beyond an aligned address."""

_INSIDE = 512
_ALIGNMENT = 64
"""Bytes that a caller's tensor begins at a multiple of, unless its layout is any."""


def copy_to_pages(inputs: Mapping[str, Any], placement: str, anywhere: Collection[str]) -> list[Any]:
    """Return the inputs of a call with a read-only copy in place of each tensor.

    A copy has the strides of its tensor. It begins at a multiple of 64 bytes, unless it may begin anywhere, and up
    to 63 bytes may then follow it before its last page ends.

    Args:
        inputs: tensors and numbers by name.
        placement: one of `PLACEMENTS`.
        anywhere: names of the tensors that may begin at any element.
    """
    import torch

    return [
        _copy_tensor(each, placement, each.element_size() if name in anywhere else _ALIGNMENT)
        if isinstance(each, torch.Tensor)
        else each
        for name, each in inputs.items()
    ]


def _copy_tensor(tensor: torch.Tensor, placement: str, alignment: int) -> torch.Tensor:
    import torch

    steps = zip(tensor.shape, tensor.stride(), strict=True)
    elements = 1 + sum((size - 1) * stride for size, stride in steps) if tensor.numel() else 0
    size, page = elements * tensor.element_size(), mmap.PAGESIZE
    inside = _INSIDE + tensor.data_ptr() % _ALIGNMENT
    room = -(-(size + inside * (placement == "inside")) // page) * page
    memory = mmap.mmap(-1, room + page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    offset = {"end": (room - size) // alignment * alignment, "start": page, "inside": inside}[placement]
    copy = torch.frombuffer(memory, dtype=torch.uint8)[offset : offset + size].view(tensor.dtype)
    copy.copy_(tensor.as_strided((elements,), (1,)))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _protect_pages(address, room + page, mmap.PROT_READ)
    _protect_pages(address if placement == "start" else address + room, page, 0)
    return copy.as_strided(tensor.shape, tensor.stride())


def _protect_pages(address: int, size: int, access: int) -> None:
    """Set how pages may be accessed.

    Raises:
        OSError: the system refuses.
    """
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(address, size, access):
        raise OSError(ctypes.get_errno(), "cannot protect the pages of an input")
