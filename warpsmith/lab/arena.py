"""Memory that the grader and its workers share: tensors between guard bands, on the CPU or the GPU.

On the CPU it is an anonymous file that both sides map; on a GPU one allocation that workers open through
CUDA's inter-process handles. The grader owns it: it fills inputs, poisons outputs, and looks at the guards.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.dtype import DTYPES
from warpsmith.lab import cuda_ipc

if TYPE_CHECKING:
    import torch

ALIGNMENT = 512
GUARD = 4096
_PATTERN = 0xA5


@dataclass(frozen=True)
class Place:
    """Where a tensor lies in the arena."""

    offset: int
    """Bytes from the start."""
    shape: tuple[int, ...]
    """Its shape, contiguous."""
    dtype: str
    """Its data type."""

    @property
    def nbytes(self) -> int:
        """Its size."""
        return prod(self.shape) * DTYPES[self.dtype].bytes

    def view(self, memory: torch.Tensor) -> torch.Tensor:
        """The tensor in `memory`, the arena's bytes."""
        import torch

        part = memory[self.offset : self.offset + self.nbytes]
        return part.view(getattr(torch, self.dtype)).view(self.shape)


class Layout:
    """Gives out places one after the other, a guard band around each."""

    def __init__(self) -> None:
        self.size = GUARD
        self.places: list[Place] = []

    def add(self, shape: tuple[int, ...], dtype: str) -> Place:
        """The next free place."""
        place = Place(self.size, shape, dtype)
        self.size += -(-place.nbytes // ALIGNMENT) * ALIGNMENT + GUARD
        self.places.append(place)
        return place


class Arena:
    """The grader's side of the shared memory."""

    def __init__(self, size: int, device: str) -> None:
        """Allocate `size` bytes on `cpu` or `cuda`."""
        import torch

        self.size, self.device = size, device
        self._file: int | None = None
        if device == "cpu":
            self._file = os.memfd_create("warpsmith-arena")
            os.ftruncate(self._file, size)
            self.memory = map_file(self._file, size)
        else:
            self.memory = torch.empty(size, dtype=torch.uint8, device=device)

    def handle(self) -> tuple[dict[str, Any], tuple[int, ...]]:
        """What a worker needs to open it: a message part and file descriptors."""
        if self._file is not None:
            return {"file": self.size}, (self._file,)
        return cuda_ipc.export(self.memory), ()

    def guard(self, layout: Layout) -> None:
        """Write the pattern around every place."""
        for band in self._bands(layout):
            band.fill_(_PATTERN)

    def intact(self, layout: Layout) -> bool:
        """Whether every guard band still holds the pattern."""
        return all(bool((band == _PATTERN).all()) for band in self._bands(layout))

    def _bands(self, layout: Layout) -> list[torch.Tensor]:
        starts = [0] + [place.offset + place.nbytes for place in layout.places]
        ends = [place.offset for place in layout.places] + [layout.size]
        return [self.memory[start:end] for start, end in zip(starts, ends, strict=True)]

    def close(self) -> None:
        """Give the memory back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        del self.memory


def map_file(file: int, size: int) -> torch.Tensor:
    """The bytes of an anonymous file as a tensor."""
    import torch

    return torch.frombuffer(mmap.mmap(file, size), dtype=torch.uint8)


def open_handle(handle: dict[str, Any], files: list[int]) -> torch.Tensor:
    """The worker's side: the arena's bytes."""
    if "file" in handle:
        return map_file(files[0], handle["file"])
    return cuda_ipc.open_exported(handle)


def poison(tensor: torch.Tensor) -> None:
    """Fill a contiguous tensor with what no honest result is: NaN, or the lowest integer."""
    import torch

    # Every bit set is NaN in all floating types.
    tensor.reshape(-1).view(torch.uint8).fill_(0xFF if tensor.dtype.is_floating_point else 0x80)
