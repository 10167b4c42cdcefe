"""A reference with its reductions done in other orders: how far rounding alone moves an honest result.

Inside an order every sum, product and scan of a reference runs as another correct implementation might do it:
backwards, or in blocks that are added one after the other. What is built from those (softmax, norms, variances) is
taken apart first; what is not known runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_BLOCK = 32
_MOST_BLOCKS = 1024
"""Longest chain of additions: each is a launch on a GPU. Longer sums get larger blocks."""

_TAKEN_APART = (
    "_softmax", "_safe_softmax", "_log_softmax", "logsumexp", "linalg_vector_norm", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_fused_rms_norm", "addmm", "addmv", "baddbmm", "mv", "dot", "vdot",
    "nansum", "mse_loss",
)  # fmt: skip
"""Operators that PyTorch's own decompositions turn into sums and products."""

Summed = Callable[["torch.Tensor", list[int]], "torch.Tensor"]
"""Sums over axes, which it drops."""
Multiplied = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""A product of matrices, or of as many in both."""


def orders() -> dict[str, AbstractContextManager[None]]:
    """Name of each order to the context in which references run that way."""
    return {
        "backwards": _order(_sum_backwards, _product_backwards),
        "blocks": _order(_sum_of_blocks, _product_of_blocks),
    }


@contextmanager
def _order(sum_: Summed, product: Multiplied) -> Iterator[None]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH), _mode(sum_, product):  # attention as two products and a softmax
        yield


def _mode(sum_: Summed, product: Multiplied) -> AbstractContextManager[object]:
    from torch.utils._python_dispatch import TorchDispatchMode

    known, apart = _known(_Reductions(sum_, product)), _decompositions()

    class Reordered(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled inside: this spares three seconds of imports

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            kwargs = kwargs or {}
            if not args or not _rounds(args[0]):
                return operator(*args, **kwargs)
            if operator in known:
                return known[operator](*args, **kwargs)
            with self:
                if operator in apart:
                    return apart[operator](*args, **kwargs)
                result = operator.decompose(*args, **kwargs)
            return operator(*args, **kwargs) if result is NotImplemented else result

    return Reordered()  # type: ignore[no-untyped-call]


def _rounds(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    import torch
    from torch._decomp import decomposition_table

    operators = [getattr(torch.ops.aten, name).default for name in _TAKEN_APART if hasattr(torch.ops.aten, name)]
    return {operator: decomposition_table[operator] for operator in operators if operator in decomposition_table}


def _known(reductions: _Reductions) -> dict[Any, Callable[..., Any]]:
    """Operators that are replaced."""
    import torch

    aten = torch.ops.aten
    return {
        aten.sum.default: reductions.sum,
        aten.sum.dim_IntList: reductions.sum,
        aten.mean.default: reductions.mean,
        aten.mean.dim: reductions.mean,
        aten.var.correction: lambda *args, **kwargs: reductions.var_mean(*args, **kwargs)[0],
        aten.std.correction: lambda *args, **kwargs: reductions.var_mean(*args, **kwargs)[0].sqrt(),
        aten.var_mean.correction: reductions.var_mean,
        aten.mm.default: reductions.product,
        aten.bmm.default: reductions.product,
        aten.cumsum.default: reductions.cumsum,
    }


class _Reductions:
    """PyTorch's reductions, with their parameters, over one order of adding up."""

    def __init__(self, sum_: Summed, product: Multiplied) -> None:
        self._sum, self.product = sum_, product

    def sum(
        self, x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None  # noqa: ANN401
    ) -> torch.Tensor:  # fmt: skip
        """As torch.sum."""
        total = self._total(x if dtype is None else x.to(dtype), dim, keepdim)
        return total.to(dtype or x.dtype)

    def mean(
        self, x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None  # noqa: ANN401
    ) -> torch.Tensor:  # fmt: skip
        """As torch.mean."""
        total = self._total(x if dtype is None else x.to(dtype), dim, keepdim)
        return (total / prod(x.shape[axis] for axis in _axes(x, dim))).to(dtype or x.dtype)

    def var_mean(
        self,
        x: torch.Tensor,
        dim: Sequence[int] | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As torch.var_mean: two passes over the values."""
        wide = x.to(_working(x))
        count = prod(x.shape[axis] for axis in _axes(x, dim))
        mean = self._total(wide, dim, True) / count
        squares = self._total((wide - mean) ** 2, dim, keepdim)
        variance = squares / max(count - (1 if correction is None else correction), 0)
        return variance.to(x.dtype), mean.reshape(variance.shape).to(x.dtype)

    def cumsum(self, x: torch.Tensor, dim: int, *, dtype: Any = None) -> torch.Tensor:  # noqa: ANN401
        """As torch.cumsum: a scan of each block, then of what the blocks before it add up to."""
        import torch

        out = dtype or x.dtype
        if not x.ndim or x.shape[dim] <= _BLOCK:
            return torch.cumsum(x, dim, dtype=dtype)
        wide = x.to(out).to(_working(x.to(out))).movedim(dim, -1)
        *rows, length = wide.shape
        blocks = -(-length // _BLOCK)
        padded = torch.nn.functional.pad(wide, (0, blocks * _BLOCK - length))
        parts = padded.reshape(*rows, blocks, _BLOCK).cumsum(-1)
        parts[..., 1:, :] += parts[..., :-1, -1:].cumsum(-2)
        scanned: torch.Tensor = parts.reshape(*rows, blocks * _BLOCK)[..., :length].movedim(-1, dim).to(out)
        return scanned

    def _total(self, x: torch.Tensor, dim: Sequence[int] | None, keepdim: bool) -> torch.Tensor:
        """The sum in the type that sums are worked out in."""
        axes = _axes(x, dim)
        total = self._sum(x.to(_working(x)), axes) if axes else x.to(_working(x), copy=True)
        kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        return total.reshape(kept) if keepdim else total


def _working(x: torch.Tensor) -> torch.dtype:
    """The type that PyTorch adds up in: narrow types in float32."""
    import torch

    return torch.float64 if x.dtype is torch.float64 else torch.float32


def _axes(x: torch.Tensor, dim: Sequence[int] | int | None) -> list[int]:
    """The axes meant, none and an empty list being all."""
    wanted = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
    return sorted(axis % x.ndim for axis in wanted) if x.ndim else []


def _sum_backwards(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
    return x.flip(axes).sum(axes)


def _sum_of_blocks(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape, length = [x.shape[axis] for axis in kept], prod(x.shape[axis] for axis in axes)
    rows = x.permute(*kept, *axes).reshape(*shape, length)
    block = _block(length)
    blocks = length // block
    whole = rows[..., : blocks * block].reshape(*shape, blocks, block).sum(-1)
    return _one_after_the_other([rows[..., blocks * block :].sum(-1), *whole.unbind(-1)])


def _product_backwards(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.flip(-1) @ b.flip(-2)


def _product_of_blocks(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    working, length = _working(a), a.shape[-1]
    block = _block(length)
    starts = range(0, max(length, 1), block)
    parts = ((a[..., at : at + block].to(working), b[..., at : at + block, :].to(working)) for at in starts)
    return _one_after_the_other(left @ right for left, right in parts).to(a.dtype)


def _block(length: int) -> int:
    return max(_BLOCK, -(-length // _MOST_BLOCKS))


def _one_after_the_other(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Their sum, from the first to the last."""
    several = iter(parts)
    total = next(several)
    for part in several:
        total += part
    return total
