"""Memory that the grader and its workers share: tensors between guard bands, on the CPU or the GPU.

On the CPU it is an anonymous file that both sides map; on a GPU one allocation that workers open through
CUDA's inter-process handles. The grader owns it: it fills inputs, poisons outputs, and looks at the guards.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.dtype import DTYPES
from warpsmith.lab.operator.tensor_bytes import as_bytes
from warpsmith.lab.workers import cuda_ipc

if TYPE_CHECKING:
    import torch

ALIGNMENT = 512
GUARD = 4096

GUARD_PATTERN = 0xA5
"""What guard bands are filled with."""

NAN_PATTERN = 0xFF
"""The same where a read outside of a tensor should show: NaN in every floating type, -1 in integers."""

LAYOUTS = ("contiguous", "padded", "transposed", "misaligned")
"""How a tensor can lie: rows further apart than they are long (every second element of a vector); the last two
axes swapped in memory; one element after an aligned address."""

_PADDING = 5
"""Elements between padded rows: odd, so that rows start at all alignments."""


@dataclass(frozen=True)
class TensorPlacement:
    """Where a tensor lies in the arena."""

    offset: int
    """Bytes from the start."""
    shape: tuple[int, ...]
    """Its shape."""
    dtype: str
    """Its data type."""
    strides: tuple[int, ...] | None = None
    """In elements; None: contiguous."""

    @property
    def nbytes(self) -> int:
        """Bytes from its first element to the end of its last."""
        count = prod(self.shape)
        if self.strides is not None and count:
            count = 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return count * DTYPES[self.dtype].bytes

    def view(self, memory: torch.Tensor) -> torch.Tensor:
        """The tensor in `memory`, the arena's bytes."""
        import torch

        part = memory[self.offset : self.offset + self.nbytes].view(getattr(torch, self.dtype))
        return part.view(self.shape) if self.strides is None else part.as_strided(self.shape, self.strides)


class Layout:
    """Gives out places one after the other, a guard band around each."""

    def __init__(self) -> None:
        self.size = GUARD
        self.places: list[TensorPlacement] = []
        self._guards: torch.Tensor | None = None

    def add(self, shape: tuple[int, ...], dtype: str, how: str = "contiguous") -> TensorPlacement:
        """The next free place, laid out as one of `LAYOUTS`; a tensor without axes is never strided."""
        shift = DTYPES[dtype].bytes if how == "misaligned" else 0
        place = TensorPlacement(self.size + shift, shape, dtype, _strides(shape, how))
        self.size += -(-(shift + place.nbytes) // ALIGNMENT) * ALIGNMENT + GUARD
        self.places.append(place)
        self._guards = None
        return place

    def guards(self, device: str) -> torch.Tensor:
        """The index of every byte that belongs to no tensor: one look-up then writes or reads them all, where a
        band at a time would cost a kernel launch each."""
        import torch

        if self._guards is None or self._guards.device.type != device:
            starts = [0, *(place.offset + place.nbytes for place in self.places)]
            ends = [*(place.offset for place in self.places), self.size]
            bands = [torch.arange(start, end) for start, end in zip(starts, ends, strict=True)]
            gaps = [_gaps(place) for place in self.places if place.strides is not None]
            self._guards = torch.cat(bands + gaps).to(device)
        return self._guards


def _strides(shape: tuple[int, ...], how: str) -> tuple[int, ...] | None:
    if how not in LAYOUTS:
        raise ValueError(f"unknown layout `{how}`; known: {', '.join(LAYOUTS)}")
    if not shape or how in ("contiguous", "misaligned"):
        return None
    if len(shape) == 1:
        return (2,)
    rows, cols = shape[-2:]
    row, last, block = (1, rows, rows * cols) if how == "transposed" else (cols + _PADDING, 1, 0)
    strides, step = [last, row], block or rows * row
    for size in reversed(shape[:-2]):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _gaps(place: TensorPlacement) -> torch.Tensor:
    """The bytes between a strided tensor's elements."""
    import torch

    width, strides = DTYPES[place.dtype].bytes, place.strides or ()
    free = torch.ones(place.nbytes, dtype=torch.bool)
    if place.nbytes:
        free.as_strided((*place.shape, width), (*(stride * width for stride in strides), 1)).fill_(False)
    return free.nonzero().flatten() + place.offset


class Arena:
    """The grader's side of the shared memory."""

    def __init__(self, size: int, device: str) -> None:
        """Allocate `size` bytes on `cpu` or `cuda`."""
        import torch

        self.size, self.device = size, device
        self._file: int | None = None
        self._pattern = GUARD_PATTERN
        if device == "cpu":
            self._file = os.memfd_create("warpsmith-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self._file, size)
            # A worker that made the file shorter would have the grader die at the next look.
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self.memory = map_file(self._file, size)
        else:
            self.memory = torch.empty(size, dtype=torch.uint8, device=device)

    def handle(self) -> tuple[dict[str, Any], tuple[int, ...]]:
        """What a worker needs to open it: a message part and file descriptors."""
        if self._file is not None:
            return {"file": self.size}, (self._file,)
        return cuda_ipc.export_memory(self.memory), ()

    def guard(self, layout: Layout, pattern: int = GUARD_PATTERN) -> None:
        """Write the pattern around every place, and between the elements of strided ones."""
        self._pattern = pattern
        self.memory.index_fill_(0, layout.guards(self.device), pattern)

    def intact(self, layout: Layout) -> bool:
        """Whether every byte outside of a tensor still holds the pattern that was last written."""
        found = self.memory.index_select(0, layout.guards(self.device))
        return bool((found == self._pattern).all())

    def poison_all(self, layout: Layout) -> None:
        """Poison every place of a contiguous layout; those of one size and type that lie evenly apart, as the same
        output of many slots does, in one launch."""
        alike: dict[tuple[int, str], list[TensorPlacement]] = {}
        for place in layout.places:
            alike.setdefault((place.nbytes, place.dtype), []).append(place)
        for group in alike.values():
            apart = {after.offset - before.offset for before, after in pairwise(group)}
            if len(apart) == 1:
                self._poison_evenly(group, apart.pop())
            else:
                for place in group:
                    poison_tensor(place.view(self.memory))

    def _poison_evenly(self, places: list[TensorPlacement], apart: int) -> None:
        import torch

        first = places[0]
        wide = not any(number % 8 for number in (first.offset, first.nbytes, apart))
        word = torch.int64 if wide else torch.uint8
        value = _poison_of(first.view(self.memory).dtype) * word.itemsize
        whole = self.memory[first.offset : places[-1].offset + first.nbytes].view(word)
        every = whole.as_strided((len(places), first.nbytes // word.itemsize), (apart // word.itemsize, 1))
        every.fill_(int.from_bytes(value, signed=wide))

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


def open_arena(handle: dict[str, Any], files: list[int]) -> torch.Tensor:
    """The worker's side: the arena's bytes."""
    if "file" in handle:
        return map_file(files[0], handle["file"])
    return cuda_ipc.open_memory(handle)


def poison_tensor(tensor: torch.Tensor) -> None:
    """Fill a contiguous tensor with what no honest result is: NaN, or the lowest integer."""
    as_bytes(tensor).fill_(_poison_of(tensor.dtype)[0])


def _poison_of(dtype: torch.dtype) -> bytes:
    """The byte that is repeated: every bit set is NaN in all floating types."""
    return b"\xff" if dtype.is_floating_point else b"\x80"
