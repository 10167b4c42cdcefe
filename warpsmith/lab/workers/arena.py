"""Memory that the grader and its workers share: tensors between guard bands, on the CPU or the GPU.

On the CPU it is an anonymous file that both processes map. On a GPU it is one allocation that workers open through
CUDA's inter-process handles. The grader owns the memory: it fills inputs, poisons outputs and checks the guards.
"""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import mmap
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.tensor_bytes import as_bytes
from warpsmith.lab.workers import cuda_ipc

if TYPE_CHECKING:
    import torch

ALIGNMENT = 512
PAGE = 4096
"""Bytes of a page."""
GUARD_PATTERN = 0xA5
"""Byte that guard bands are filled with."""

NAN_PATTERN = 0xFF
"""Guard byte that makes a read outside a tensor visible: NaN in every floating type, -1 in integers."""

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
"""Flags of Linux's `fallocate`."""

CONTIGUOUS = "contiguous"

EXPANDED, FRAMED = "expanded", "framed"

STRIDED = ("padded", "transposed", "sliced", "misaligned", EXPANDED, FRAMED)
"""Further memory layouts of a tensor.

`padded`: rows, planes or both are farther apart than they are long. `transposed`: the last two axes are swapped
in memory; of more axes, any are; lines and planes may be padded, and lines sliced. `sliced`: each row uses every
second, third or fourth element. A vector does so in all three. `misaligned`: it begins some elements after an
aligned address; so do padded and sliced ones by chance. `expanded`: all of some axes drawn by chance, or of every
axis, is one slice in memory; the other axes are in any order, padded, and sliced, by chance. `framed`: each row
begins inside of the row before it, as frames of a signal do; planes may be padded, and all of it sliced. A vector,
or rows of one element, have no such layout.
"""

DENSE = ("transposed", EXPANDED, FRAMED)
"""Layouts that may come without gaps, as they do where a tensor is large."""

_DENSE_SHARE = 1 / 3
_PADDED_SHARE = _SHIFTED_SHARE = _REORDERED_SHARE = _GAP_SHARE = _OUTER_SHARE = 0.5


@dataclass(frozen=True)
class TensorPlacement:
    """Placement of one tensor in the arena."""

    offset: int
    """Bytes from the start of the arena."""
    shape: tuple[int, ...]
    """Sizes along each axis."""
    dtype: str
    """Data type, as PyTorch names it."""
    strides: tuple[int, ...] | None = None
    """Strides in elements; None for a contiguous tensor."""

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last one."""
        count = prod(self.shape)
        if self.strides is not None and count:
            count = 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return count * DTYPES[self.dtype].bytes

    @property
    def expanded_axes(self) -> tuple[int, ...]:
        """Axes of several elements that are one in memory."""
        pairs = enumerate(zip(self.shape, self.strides or self.shape, strict=True))
        return tuple(axis for axis, (size, stride) in pairs if size > 1 and stride == 0)

    @property
    def hop(self) -> int:
        """Elements of a row that lie before the next row's first one where rows overlap; 0 where they do not."""
        if self.strides is None or len(self.shape) < 2 or min(self.shape[-2:]) < 2:
            return 0
        row, element = self.strides[-2:]
        # Other layouts have a longer distance between rows, or a shorter one than between a row's elements.
        overlaps = 0 < element <= row < element * self.shape[-1]
        return row // element if overlaps else 0

    @property
    def shares_elements(self) -> bool:
        """True if several elements are one in memory."""
        return bool(self.expanded_axes or self.hop)

    def view(self, memory: torch.Tensor) -> torch.Tensor:
        """View the tensor in `memory`, the arena's bytes."""
        import torch

        part = memory[self.offset : self.offset + self.nbytes].view(getattr(torch, self.dtype))
        return part.view(self.shape) if self.strides is None else part.as_strided(self.shape, self.strides)


class Layout:
    """Allocator of placements, one after the other, each between guard bands."""

    def __init__(self, *, widest: bool = False, begin_step: int = ALIGNMENT) -> None:
        """Lay out tensors; with `widest` each takes as much room as its layout may ever take.

        The first one begins at a multiple of `begin_step` bytes in a page, drawn by chance.
        """
        self._paddings = (max(input_rules.PADDINGS),) if widest else input_rules.PADDINGS
        self._slices = (max(input_rules.SLICE_STEPS),) if widest else input_rules.SLICE_STEPS
        self._widest = widest
        self._begin = random.SystemRandom().randrange(0, PAGE, begin_step)
        self.size = input_rules.GUARD_BYTES + self._begin
        self.places: list[TensorPlacement] = []
        self._guards: torch.Tensor | None = None

    def add(self, shape: tuple[int, ...], dtype: str, layout: str = "contiguous") -> TensorPlacement:
        """Reserve the next placement, contiguous or one of `STRIDED`; a tensor without axes is never strided."""
        shift = self._draw_shift(dtype, layout)
        padding, slicing = (random.SystemRandom().choice(each) for each in (self._paddings, self._slices))
        if layout in DENSE and (len(shape) > 1 or layout == EXPANDED) and not self._widest:
            # Each byte of a gap is checked, so that a wide one is not taken several times.
            is_padded = random.SystemRandom().random() < _PADDED_SHARE
            padding, slicing = (padding, 1) if is_padded else (min(self._paddings), slicing)
        if layout in DENSE and (prod(shape) > input_rules.GAP_ELEMENTS or self._may_be_dense()):
            padding, slicing = 0, 1
        strides = _strides(shape, layout, padding, slicing, widest=self._widest)
        placement = TensorPlacement(self.size + shift, shape, dtype, strides)
        room = placement.nbytes
        if self._widest and shape:
            room = max(room, _most_elements(shape, layout, padding, slicing) * DTYPES[dtype].bytes)
        self.size += -(-(shift + room) // ALIGNMENT) * ALIGNMENT + input_rules.GUARD_BYTES
        self.places.append(placement)
        self._guards = None
        return placement

    @property
    def room(self) -> int:
        """Bytes that the same tensors fit in, wherever in its page the first one begins."""
        return self.size - self._begin + PAGE

    def _draw_shift(self, dtype: str, layout: str) -> int:
        """Draw the bytes by which a tensor begins after an aligned address: an odd multiple of a power of two."""
        width, most, chance = DTYPES[dtype].bytes, input_rules.SHIFT_BYTES, random.SystemRandom()
        if layout not in ("misaligned", "padded", "sliced"):
            return 0
        if self._widest:
            return most - width
        if layout != "misaligned" and chance.random() >= _SHIFTED_SHARE:
            return 0
        step = width << chance.randrange((most // width).bit_length() - 1)
        return chance.randrange(step, most, 2 * step)

    def _may_be_dense(self) -> bool:
        return not self._widest and random.SystemRandom().random() < _DENSE_SHARE

    def guards(self, device: str) -> torch.Tensor:
        """Return the index of every byte that belongs to no tensor.

        One indexed operation then writes or reads all guards; one operation per band would cost a kernel launch
        each.
        """
        import torch

        if self._guards is None or self._guards.device.type != device:
            starts = [0, *(placement.offset + placement.nbytes for placement in self.places)]
            ends = [*(placement.offset for placement in self.places), self.size]
            bands = [torch.arange(start, end) for start, end in zip(starts, ends, strict=True)]
            gaps = [_gaps(placement, device) for placement in self.places if placement.strides is not None]
            self._guards = torch.cat([torch.cat(bands).to(device), *gaps])
        return self._guards


def _most_elements(shape: tuple[int, ...], layout: str, padding: int, slicing: int) -> int:
    """Return the elements that axes in any order, expanded ones or frames take with such gaps, at most; else 0."""
    if layout not in DENSE:
        return 0
    options = ((padding, 1), (min(padding, *input_rules.PADDINGS), slicing))
    return max(step * (prod(shape) + gap * _count_gaps(shape)) for gap, step in options)


def _count_gaps(shape: tuple[int, ...]) -> int:
    """Return the gaps, at most, in any order of axes: behind lines, and behind what has several lines."""
    sizes, lines, count = sorted(max(size, 1) for size in shape), prod(shape), 0
    for position, size in enumerate(sizes[:-1]):
        lines //= size
        count += lines if size > 1 or position == 0 else 0
    return count


def _strides(
    shape: tuple[int, ...], layout: str, padding: int, slicing: int, *, widest: bool = False
) -> tuple[int, ...] | None:
    """Return the strides of a layout; None if it is dense.

    Args:
        shape: sizes.
        layout: `CONTIGUOUS` or one of `STRIDED`.
        padding: elements behind the slices of `padded` ones.
        slicing: step between the elements of `sliced` ones, of others that are sliced too, and of vectors.
        widest: each axis of `padded` ones has a gap.
    """
    if layout not in (CONTIGUOUS, *STRIDED):
        raise ValueError(f"unknown layout `{layout}`; the layouts are: {', '.join((CONTIGUOUS, *STRIDED))}")
    if not shape or layout in (CONTIGUOUS, "misaligned"):
        return None
    if layout == EXPANDED:
        return _expanded_strides(shape, padding, slicing)
    if layout == FRAMED:
        return _framed_strides(shape, padding, slicing)
    if len(shape) == 1:
        return (max(slicing, 2),)
    if layout == "transposed":
        return _reordered_strides(shape, padding, slicing, widest)
    step, gaps = (1, _draw_gaps(len(shape) - 1, padding, widest)) if layout == "padded" else (slicing, ())
    strides = [step]
    for size, gap in itertools.zip_longest(reversed(shape[1:]), gaps, fillvalue=0):
        step = step * size + gap
        strides.append(step)
    return tuple(reversed(strides))


def _draw_gaps(count: int, padding: int, widest: bool) -> tuple[int, ...]:
    """Draw which axes but the last have a gap behind each slice, the innermost one first: at least one has."""
    chance = random.SystemRandom()
    surely = chance.randrange(count)
    return tuple(
        padding if widest or axis == surely or chance.random() < _GAP_SHARE else 0 for axis in range(count)
    )


def _reordered_strides(shape: tuple[int, ...], padding: int, slicing: int, widest: bool) -> tuple[int, ...]:
    """Return strides with the axes in another order than the tensor's, by chance, from a step on; lines, planes or
    both are as far apart as they are long, or farther by the padding."""
    axes = list(range(len(shape)))
    order = axes[:]
    while order == axes:
        order = random.SystemRandom().sample(axes, len(axes))
    return _ordered_strides(shape, order, slicing, _draw_gaps(len(shape) - 1, padding * slicing, widest))


def _expanded_strides(shape: tuple[int, ...], padding: int, step: int) -> tuple[int, ...] | None:
    """Return strides from a step on, but zero for axes drawn by chance, or for all; by chance the others are in
    another order than the tensor's, and padded. None if no axis has two elements."""
    chance = random.SystemRandom()
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if not axes:
        return None
    expanded = _draw_expanded(axes)
    order = [axis for axis in range(len(shape)) if axis not in expanded]
    if chance.random() < _REORDERED_SHARE:
        chance.shuffle(order)
    gaps = _draw_gaps(len(order) - 1, padding * step, False) if len(order) > 1 else ()
    return _ordered_strides(shape, order, step, gaps)


def _framed_strides(shape: tuple[int, ...], padding: int, step: int) -> tuple[int, ...] | None:
    """Return strides from a step on of rows that overlap; planes of them lie one behind the other, padded by
    chance. None for a vector, and for rows of one element."""
    if len(shape) < 2 or shape[-1] < 2:
        return None
    *outer, rows, size = shape
    hop = random.SystemRandom().choice((1, max(size // 4, 1), size // 2, random.SystemRandom().randrange(1, size)))
    planes = (*outer, hop * max(rows - 1, 0) + size)
    gaps = _draw_gaps(len(outer), padding * step, False) if outer else ()
    *others, _ = _ordered_strides(planes, range(len(planes)), step, gaps)
    return (*others, hop * step, step)


def _draw_expanded(axes: list[int]) -> list[int]:
    """Draw one of some axes, as many of the first ones as by chance, or as many of any: masks are expanded along
    the outer axes, and the gradient of a sum along all."""
    chance = random.SystemRandom()
    if chance.random() < input_rules.EXPANDED_ALONE_SHARE:
        return [chance.choice(axes)]
    some = axes if chance.random() < _OUTER_SHARE else chance.sample(axes, len(axes))
    return some[: chance.randint(1, len(axes))]


def _ordered_strides(
    shape: tuple[int, ...], order: Sequence[int], step: int, gaps: Sequence[int]
) -> tuple[int, ...]:
    """Return strides of axes, the outermost one first, with gaps behind their slices, the innermost one first; an
    axis that is not among them has the stride zero, and one slice no gap behind it."""
    strides, innermost = [0] * len(shape), order[-1:]
    for axis, gap in itertools.zip_longest(reversed(order), gaps, fillvalue=0):
        has_gap = shape[axis] > 1 or axis in innermost
        strides[axis], step = step, step * max(shape[axis], 1) + (gap if has_gap else 0)
    return tuple(strides)


def _gaps(placement: TensorPlacement, device: str) -> torch.Tensor:
    """Return the offsets of the bytes between a strided tensor's elements."""
    import torch

    width, strides = DTYPES[placement.dtype].bytes, placement.strides or ()
    free = torch.ones(placement.nbytes, dtype=torch.bool, device=device)
    if placement.nbytes:
        free.as_strided((*placement.shape, width), (*(stride * width for stride in strides), 1)).fill_(False)
    return free.nonzero().flatten() + placement.offset


class Arena:
    """Shared memory as the grader holds it."""

    def __init__(self, size: int, device: str) -> None:
        """Allocate `size` bytes on `cpu` or `cuda`."""
        import torch

        self.size, self.device = size, device
        self._file: int | None = None
        self._pattern = GUARD_PATTERN
        if device == "cpu":
            self._file = os.memfd_create("warpsmith-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self._file, size)
            # If a worker could shorten the file, the grader would die at its next access.
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self.memory = map_file(self._file, size)
        else:
            self.memory = torch.empty(size, dtype=torch.uint8, device=device)

    def handle(self) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return what a worker needs to open the arena: a part of a message, and file descriptors."""
        if self._file is not None:
            return {"file": self.size}, (self._file,)
        return cuda_ipc.export_memory(self.memory), ()

    def write_guards(self, layout: Layout, pattern: int = GUARD_PATTERN) -> None:
        """Write the pattern around every placement, and between the elements of strided ones."""
        self._pattern = pattern
        self.memory.index_fill_(0, layout.guards(self.device), pattern)

    def guards_are_intact(self, layout: Layout) -> bool:
        """Return whether every byte outside of a tensor still holds the pattern that was last written."""
        guards = self.memory.index_select(0, layout.guards(self.device))
        return bool((guards == self._pattern).all())

    def clear_beyond(self, layout: Layout) -> None:
        """Make all memory beyond a layout zero, so that no side leaves a message there for another one.

        A GPU is done with it at the return: it must not be at it while a call is timed.
        """
        if self._file is None:
            import torch

            self.memory[layout.size :].zero_()
            torch.cuda.synchronize()
            return
        first = -(-layout.size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory[layout.size : first].zero_()
        if first < self.size:  # dropping pages is nearly free where none was written
            _punch_hole(self._file, first, self.size - first)

    def poison_all(self, layout: Layout) -> None:
        """Poison every placement of a contiguous layout.

        Placements of one size and type at equal distances, such as one output of many slots, are filled in one
        launch.
        """
        groups: dict[tuple[int, str], list[TensorPlacement]] = {}
        for placement in layout.places:
            groups.setdefault((placement.nbytes, placement.dtype), []).append(placement)
        for group in groups.values():
            distances = {after.offset - before.offset for before, after in pairwise(group)}
            if len(distances) == 1:
                self._poison_evenly(group, distances.pop())
            else:
                for placement in group:
                    poison_tensor(placement.view(self.memory))

    def _poison_evenly(self, places: list[TensorPlacement], distance: int) -> None:
        import torch

        first = places[0]
        wide = not any(number % 8 for number in (first.offset, first.nbytes, distance))
        word = torch.int64 if wide else torch.uint8
        value = _poison_of(first.view(self.memory).dtype) * word.itemsize
        span = self.memory[first.offset : places[-1].offset + first.nbytes].view(word)
        rows = span.as_strided((len(places), first.nbytes // word.itemsize), (distance // word.itemsize, 1))
        rows.fill_(int.from_bytes(value, signed=wide))

    def close(self) -> None:
        """Release the memory."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        del self.memory


def _punch_hole(file: int, start: int, length: int) -> None:
    """Drop the pages of a part of a file, which then reads as zeros.

    Raises:
        OSError: the system refuses.
    """
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if fallocate(file, _KEEP_SIZE | _PUNCH_HOLE, start, length):
        raise OSError(ctypes.get_errno(), "cannot drop the pages of an arena")


def map_file(file: int, size: int) -> torch.Tensor:
    """Map an anonymous file and return its bytes as a tensor."""
    import torch

    return torch.frombuffer(mmap.mmap(file, size), dtype=torch.uint8)


def open_arena(handle: dict[str, Any], files: list[int]) -> torch.Tensor:
    """Open the arena in a worker and return its bytes."""
    if "file" in handle:
        return map_file(files[0], handle["file"])
    return cuda_ipc.open_memory(handle)


def poison_tensor(tensor: torch.Tensor) -> None:
    """Fill a contiguous tensor with a value that no honest result has: NaN, or the lowest integer."""
    as_bytes(tensor).fill_(_poison_of(tensor.dtype)[0])


def _poison_of(dtype: torch.dtype) -> bytes:
    """Return the byte to repeat; NaN in every floating type has all bits set."""
    return b"\xff" if dtype.is_floating_point else b"\x80"
