"""Conflicts of blocks in an interpreted launch: on a device blocks run at once, in the interpreter one by one.

A block that reads what another one wrote in the same launch, or writes another value to the same place, is right
by chance. Once a block has used an atomic operation the launch is left alone: blocks may wait for each other so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


class BlockConflict(ValueError):
    """Access to memory that another block of the same launch wrote."""


@dataclass
class _WatchedMemory:
    """Memory that tensors lie in, which may overlap."""

    first: int
    """Address of its first byte."""
    size: int
    """Number of its bytes."""
    writers: Any
    """Number of the block that wrote last to an element, at the place of its first byte; 0: none."""


@dataclass
class _WatchedLaunch:
    """Memory that the blocks of a launch share."""

    memories: list[_WatchedMemory]
    ordered: bool = field(default=False)
    """True once a block used an atomic operation."""


_launches: list[_WatchedLaunch] = []
"""Launches that are being interpreted; the last one is watched."""


@contextmanager
def watched_launch(tensors: Iterable[Any]) -> Iterator[None]:
    """Watch the memory of tensors on the CPU while a launch is interpreted within the context."""
    import numpy

    extents = merge_extents(map(_extent, tensors))
    _launches.append(
        _WatchedLaunch([_WatchedMemory(first, size, numpy.zeros(size, numpy.int32)) for first, size in extents])
    )
    try:
        yield
    finally:
        _launches.pop()


def merge_extents(extents: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge extents of memory, each an address and a size in bytes, where they overlap."""
    merged: list[tuple[int, int]] = []
    for first, size in sorted(extent for extent in extents if extent[1]):
        end = merged[-1][0] + merged[-1][1] if merged else 0
        if first < end:
            merged[-1] = (merged[-1][0], max(end, first + size) - merged[-1][0])
        else:
            merged.append((first, size))
    return merged


def _extent(tensor: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return the address of a tensor's first element, and the bytes up to its last one; strides are positive."""
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size() if tensor.numel() else 0


def patch_interpreter_accesses() -> None:
    """Check every load and store of the interpreter; once in a worker."""
    from triton.runtime.interpreter import InterpreterBuilder

    load: Callable[..., Any] = InterpreterBuilder.create_masked_load
    store: Callable[..., Any] = InterpreterBuilder.create_masked_store

    def create_masked_load(self: Any, ptrs: Any, mask: Any, *others: Any, **named_others: Any) -> Any:  # noqa: ANN401
        for memory, places, _ in _touched(ptrs, mask):
            writers = memory.writers[places]
            if ((writers != 0) & (writers != _block_number(self))).any():
                raise BlockConflict("a block reads what another block wrote in the same launch, without atomics")
        return load(self, ptrs, mask, *others, **named_others)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *others: Any) -> Any:  # noqa: ANN401
        block = _block_number(self)
        for memory, places, chosen in _touched(ptrs, mask):
            writers = memory.writers[places]
            if ((writers != 0) & (writers != block)).any():
                _require_same_values(ptrs, value, chosen, (writers != 0) & (writers != block))
            memory.writers[places] = block
        return store(self, ptrs, value, mask, *others)

    InterpreterBuilder.create_masked_load = create_masked_load
    InterpreterBuilder.create_masked_store = create_masked_store
    for name in ("create_atomic_cas", "create_atomic_rmw"):
        setattr(InterpreterBuilder, name, _ordering(getattr(InterpreterBuilder, name)))


def _touched(ptrs: Any, mask: Any) -> Iterator[tuple[_WatchedMemory, Any, Any]]:  # noqa: ANN401
    """Yield each watched memory of an access, the places in it, and which elements of the access they are."""
    import numpy

    if not _launches or _launches[-1].ordered:
        return
    addresses = ptrs.data.ravel()
    chosen = numpy.flatnonzero(numpy.broadcast_to(mask.data, ptrs.data.shape).ravel())
    places = addresses[chosen].astype(numpy.int64)
    for memory in _launches[-1].memories:
        if not places.size:
            return
        inside = (places >= memory.first) & (places < memory.first + memory.size)
        if inside.all():
            yield memory, places - memory.first, chosen
            return
        if inside.any():
            yield memory, places[inside] - memory.first, chosen[inside]


def _require_same_values(ptrs: Any, value: Any, chosen: Any, conflicting: Any) -> None:  # noqa: ANN401
    """Raise BlockConflict if an element would get another value than it has from another block."""
    import numpy
    from triton.runtime.interpreter import _get_np_dtype, _interpreter

    kind = numpy.dtype(_get_np_dtype(ptrs.get_element_ty()))
    elements = chosen[conflicting]
    addresses = numpy.ascontiguousarray(ptrs.data.ravel()[elements])
    every = numpy.ones(len(elements), bool)
    before = _interpreter.load(addresses, every, numpy.zeros(len(elements), kind), kind)
    after = numpy.broadcast_to(value.data, ptrs.data.shape).ravel()[elements].astype(kind)
    if before.tobytes() != after.tobytes():
        raise BlockConflict("two blocks write different values to the same place in one launch, without atomics")


def _block_number(builder: Any) -> int:  # noqa: ANN401
    (x, y, z), (_, columns, planes) = builder.grid_idx, builder.grid_dim
    return 1 + int((x * columns + y) * planes + z)


def _ordering(operation: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if _launches:
            _launches[-1].ordered = True
        return operation(*args, **kwargs)

    return marked
