"""Guards around the CPU tensors that a call allocates, as its results: a write beyond one shows."""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.lab.workers.calls import dispatch

if TYPE_CHECKING:
    import torch

_STEP = 64
"""Bytes that new tensors of PyTorch begin at multiples of."""
_PATTERN = b"\xa5"


class _Guarded(NamedTuple):
    memory: mmap.mmap
    start: int
    end: int
    shape: tuple[int, ...]

    def is_intact(self) -> bool:
        parts = self.memory[: self.start], self.memory[self.end :]
        return all(part == _PATTERN * len(part) for part in parts)


@contextmanager
def guarded_memory() -> Iterator[None]:
    """Surround new CPU tensors on this thread with a page on each side, and keep their content.

    Raises:
        IndexError: a call wrote beyond one.
    """
    import torch

    guarded: list[_Guarded] = []

    def surround(name: str, tensor: Any) -> Any:  # noqa: ANN401 - whatever an operator returns
        is_new = dispatch.allocates(name) and type(tensor) is torch.Tensor and tensor.device.type == "cpu"
        if not (is_new and tensor.numel() and tensor.is_contiguous()):
            return tensor
        copy, guard = _copy_between_guards(tensor)
        guarded.append(guard)
        return copy

    with dispatch.replace_results(surround):
        yield
    for each in guarded:
        if not each.is_intact():
            raise IndexError(f"it wrote beyond a tensor of shape {each.shape} that it allocated")


def _copy_between_guards(tensor: torch.Tensor) -> tuple[torch.Tensor, _Guarded]:
    import torch

    page, size = mmap.PAGESIZE, tensor.nbytes
    start = page + _STEP * secrets.randbelow(page // _STEP)
    memory = mmap.mmap(-1, start + size + page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:start], memory[start + size :] = _PATTERN * start, _PATTERN * page
    copy = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=start).view(tensor.shape)
    return copy.copy_(tensor), _Guarded(memory, start, start + size, tuple(tensor.shape))
