"""A stand-in for `cuda.tile` over torch's CPU tensors, block after block: cuTile itself has no interpreter.

It knows what a kernel of rows uses and no more. What it cannot tell: how the compiler rounds, reorders and places.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import Any

import pytest
import torch

NEG_INF = -math.inf


class Tile(torch.Tensor):
    """A tile: a tensor whose sides are powers of two."""

    def astype(self, dtype: torch.dtype) -> Tile:
        """The values in another type."""
        return self.to(dtype)


class PaddingMode(Enum):
    """What a load gives beyond the array; NaN where nothing is promised."""

    UNDETERMINED = math.nan
    ZERO = 0.0
    NEG_INF = NEG_INF


class RoundingMode(Enum):
    """How a division may round."""

    APPROX = "approx"


class Constant:
    """`ct.Constant[int]` in a signature."""

    def __class_getitem__(cls, item: type) -> type:
        """The type itself."""
        return item


class _Kernel:
    def __init__(self, function: Callable[..., None], **hints: int) -> None:
        self.function, self.hints = function, hints

    def replace_hints(self, **hints: int) -> _Kernel:
        return _Kernel(self.function, **{**self.hints, **hints})


class _Grid:
    """The block that is at work."""

    at: tuple[int, ...] = ()


def _kernel(function: Callable[..., None] | None = None, /, **hints: int) -> Any:
    return _Kernel(function, **hints) if function else lambda function: _Kernel(function, **hints)


def _launch(stream: object, grid: tuple[int, ...], kernel: _Kernel, args: tuple[Any, ...]) -> None:
    assert all(size > 0 for size in grid), "a grid of no blocks is no launch"
    arrays = [arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)]
    assert len(set(arrays)) == len(arrays), "arguments that alias"
    for block in itertools.product(*map(range, grid)):
        _Grid.at = block
        kernel.function(*args)


def _slices(array: torch.Tensor, index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    for side, size, at in zip(shape, array.shape, index, strict=True):
        assert side & (side - 1) == 0, f"{side} is no power of two"
        assert 0 <= at * side < size, "a tile that lies outside"
    return tuple(slice(at * side, (at + 1) * side) for at, side in zip(index, shape, strict=True))


def _load(
    array: torch.Tensor,
    index: tuple[int, ...],
    shape: tuple[int, ...],
    *,
    padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
    allow_tma: bool = True,
) -> Tile:
    inside = array[_slices(array, index, shape)]
    tile = torch.full(shape, padding_mode.value, dtype=array.dtype)
    tile[tuple(slice(size) for size in inside.shape)] = inside
    return tile.as_subclass(Tile)


def _store(array: torch.Tensor, index: tuple[int, ...], tile: Tile, *, allow_tma: bool = True) -> None:
    inside = array[_slices(array, index, tuple(tile.shape))]
    inside.copy_(tile[tuple(slice(size) for size in inside.shape)])


def _max(tile: Tile, axis: int, *, keepdims: bool = False) -> Tile:
    """NaN is dropped, as cuTile's is unless it is told otherwise."""
    return torch.where(tile.isnan(), NEG_INF, tile).amax(axis, keepdim=keepdims)


def _maximum(a: Tile, b: float | Tile) -> Tile:
    """NaN is dropped here too."""
    return torch.fmax(a, torch.as_tensor(b))


def _sum(tile: Tile, axis: int, *, keepdims: bool = False) -> Tile:
    return tile.sum(axis, keepdim=keepdims)


def _truediv(a: float | Tile, b: Tile, *, rounding_mode: RoundingMode, flush_to_zero: bool) -> Tile:
    assert rounding_mode is RoundingMode.APPROX
    assert flush_to_zero
    return torch.div(a, b)


def _exp2(tile: Tile, *, flush_to_zero: bool) -> Tile:
    """Denormals are zero where they would cost instructions."""
    powers = torch.exp2(tile)
    return torch.where(powers < torch.finfo(torch.float32).tiny, 0.0, powers) if flush_to_zero else powers


def _full(shape: tuple[int, ...], value: float, dtype: torch.dtype) -> Tile:
    return torch.full(shape, value, dtype=dtype).as_subclass(Tile)


def _arange(size: int, *, dtype: torch.dtype) -> Tile:
    return torch.arange(size, dtype=dtype).as_subclass(Tile)


_NAMES = {
    "Constant": Constant,
    "PaddingMode": PaddingMode,
    "RoundingMode": RoundingMode,
    "abs": torch.abs,
    "arange": _arange,
    "bid": lambda axis: _Grid.at[axis],
    "cdiv": lambda a, b: -(-a // b),
    "exp": torch.exp,
    "exp2": _exp2,
    "float32": torch.float32,
    "full": _full,
    "function": lambda function: function,
    "int32": torch.int32,
    "kernel": _kernel,
    "launch": _launch,
    "load": _load,
    "max": _max,
    "maximum": _maximum,
    "reshape": torch.reshape,
    "rsqrt": torch.rsqrt,
    "store": _store,
    "sum": _sum,
    "truediv": _truediv,
    "where": torch.where,
}


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on what imports `cuda.tile` finds this, and there is a stream to launch on."""
    tile, parent = ModuleType("cuda.tile"), ModuleType("cuda")
    vars(tile).update(_NAMES)
    parent.tile = tile  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", parent)
    monkeypatch.setitem(sys.modules, "cuda.tile", tile)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: None)
