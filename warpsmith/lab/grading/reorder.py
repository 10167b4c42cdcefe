"""Reordered reductions of a reference, which show how far rounding alone moves an honest result.

Inside an order every sum, product and scan of a reference runs as another correct implementation might run it:
backwards, or in blocks that are added one after the other. Operators that are built from those (softmax, norms,
variances) are decomposed first; unknown operators run unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from warpsmith.core import gate_rules

if TYPE_CHECKING:
    import torch

_DECOMPOSED = (
    "_softmax", "_safe_softmax", "_log_softmax", "logsumexp", "linalg_vector_norm", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_fused_rms_norm", "addmm", "addmv", "baddbmm", "mv", "dot", "vdot",
    "nansum", "mse_loss",
)  # fmt: skip
"""Operators that PyTorch's own decompositions turn into sums and products."""

SumFunction = Callable[["torch.Tensor", list[int]], "torch.Tensor"]
"""Sums a tensor over axes, which the result lacks."""
ProductFunction = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Multiplies two matrices, or two batches of matrices."""


def summation_orders() -> dict[str, AbstractContextManager[None]]:
    """Return the context of each order, by name; references run in that order inside it."""
    return {
        "backwards": _order(_sum_backwards, _product_backwards),
        "blocks": _order(_sum_of_blocks, _product_of_blocks),
    }


def sums_with_noise(seed: int, share: float) -> AbstractContextManager[None]:
    """Return a context in which every sum and product of a reference is off by a share of its absolute terms, with
    a random sign."""

    def noise(size: torch.Tensor) -> torch.Tensor:
        import torch

        nonlocal seed
        generator, seed = torch.Generator(device=size.device).manual_seed(seed), seed + 1
        return size * share * (torch.randint(2, size.shape, generator=generator, device=size.device) * 2 - 1)

    def add(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
        return x.sum(axes) + noise(x.abs().sum(axes))

    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        accumulate = _accumulation_dtype(a)
        left, right = a.to(accumulate), b.to(accumulate)
        return (left @ right + noise(left.abs() @ right.abs())).to(a.dtype)

    return _order(add, multiply)


@contextmanager
def _order(sum_: SumFunction, product: ProductFunction) -> Iterator[None]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH), _dispatch_mode(sum_, product):  # attention as two products and a softmax
        yield


def _dispatch_mode(sum_: SumFunction, product: ProductFunction) -> AbstractContextManager[object]:
    from torch.utils._python_dispatch import TorchDispatchMode

    replacements, decompositions = _replacements(_Reductions(sum_, product)), _decompositions()

    class Reordered(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled inside, and this saves three seconds of imports

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            kwargs = kwargs or {}
            if not args or not _is_floating(args[0]):
                return operator(*args, **kwargs)
            if operator in replacements:
                return replacements[operator](*args, **kwargs)
            with self:
                if operator in decompositions:
                    return decompositions[operator](*args, **kwargs)
                result = operator.decompose(*args, **kwargs)
            return operator(*args, **kwargs) if result is NotImplemented else result

    return Reordered()  # type: ignore[no-untyped-call]


def _is_floating(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    import torch
    from torch._decomp import decomposition_table

    operators = [getattr(torch.ops.aten, name).default for name in _DECOMPOSED if hasattr(torch.ops.aten, name)]
    return {operator: decomposition_table[operator] for operator in operators if operator in decomposition_table}


def _replacements(reductions: _Reductions) -> dict[Any, Callable[..., Any]]:
    """Return the operators that an order replaces, each with its replacement."""
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
    """PyTorch's reductions, with their parameters, in one order of summation."""

    def __init__(self, sum_: SumFunction, product: ProductFunction) -> None:
        self._sum, self.product = sum_, product

    def sum(
        self, x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None  # noqa: ANN401
    ) -> torch.Tensor:  # fmt: skip
        """Sum as `torch.sum` does."""
        total = self._total(x if dtype is None else x.to(dtype), dim, keepdim)
        return total.to(dtype or x.dtype)

    def mean(
        self, x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None  # noqa: ANN401
    ) -> torch.Tensor:  # fmt: skip
        """Average as `torch.mean` does."""
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
        """Compute variance and mean as `torch.var_mean` does, in two passes over the values."""
        wide = x.to(_accumulation_dtype(x))
        count = prod(x.shape[axis] for axis in _axes(x, dim))
        mean = self._total(wide, dim, True) / count
        squares = self._total((wide - mean) ** 2, dim, keepdim)
        variance = squares / max(count - (1 if correction is None else correction), 0)
        return variance.to(x.dtype), mean.reshape(variance.shape).to(x.dtype)

    def cumsum(self, x: torch.Tensor, dim: int, *, dtype: Any = None) -> torch.Tensor:  # noqa: ANN401
        """Scan as `torch.cumsum` does: inside each block, then over the sums of the blocks before it."""
        import torch

        out = dtype or x.dtype
        if not x.ndim or x.shape[dim] <= gate_rules.REORDER_BLOCK:
            return torch.cumsum(x, dim, dtype=dtype)
        wide = x.to(out).to(_accumulation_dtype(x.to(out))).movedim(dim, -1)
        *rows, length = wide.shape
        blocks = -(-length // gate_rules.REORDER_BLOCK)
        padded = torch.nn.functional.pad(wide, (0, blocks * gate_rules.REORDER_BLOCK - length))
        parts = padded.reshape(*rows, blocks, gate_rules.REORDER_BLOCK).cumsum(-1)
        parts[..., 1:, :] += parts[..., :-1, -1:].cumsum(-2)
        scanned: torch.Tensor = (
            parts.reshape(*rows, blocks * gate_rules.REORDER_BLOCK)[..., :length].movedim(-1, dim).to(out)
        )
        return scanned

    def _total(self, x: torch.Tensor, dim: Sequence[int] | None, keepdim: bool) -> torch.Tensor:
        """Sum in the type that PyTorch accumulates in."""
        axes = _axes(x, dim)
        total = self._sum(x.to(_accumulation_dtype(x)), axes) if axes else x.to(_accumulation_dtype(x), copy=True)
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        return total.reshape(shape) if keepdim else total


def _accumulation_dtype(x: torch.Tensor) -> torch.dtype:
    """Return the type that PyTorch accumulates in: float32 for narrower types."""
    import torch

    return torch.float64 if x.dtype is torch.float64 else torch.float32


def _axes(x: torch.Tensor, dim: Sequence[int] | int | None) -> list[int]:
    """Return the axes of `dim`, where None and an empty list stand for all."""
    axes = [dim] if isinstance(dim, int) else list(dim or range(x.ndim))
    return sorted(axis % x.ndim for axis in axes) if x.ndim else []


def _sum_backwards(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
    return x.flip(axes).sum(axes)


def _sum_of_blocks(x: torch.Tensor, axes: list[int]) -> torch.Tensor:
    other_axes = [axis for axis in range(x.ndim) if axis not in axes]
    shape, length = [x.shape[axis] for axis in other_axes], prod(x.shape[axis] for axis in axes)
    rows = x.permute(*other_axes, *axes).reshape(*shape, length)
    block = _block_length(length)
    blocks = length // block
    whole = rows[..., : blocks * block].reshape(*shape, blocks, block).sum(-1)
    return _add_in_sequence([rows[..., blocks * block :].sum(-1), *whole.unbind(-1)])


def _product_backwards(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.flip(-1) @ b.flip(-2)


def _product_of_blocks(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    accumulate, length = _accumulation_dtype(a), a.shape[-1]
    block = _block_length(length)
    starts = range(0, max(length, 1), block)
    parts = (
        (a[..., start : start + block].to(accumulate), b[..., start : start + block, :].to(accumulate))
        for start in starts
    )
    return _add_in_sequence(left @ right for left, right in parts).to(a.dtype)


def _block_length(length: int) -> int:
    return max(gate_rules.REORDER_BLOCK, -(-length // gate_rules.REORDER_MAX_BLOCKS))


def _add_in_sequence(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Add the parts from the first to the last."""
    rest = iter(parts)
    total = next(rest)
    for part in rest:
        total += part
    return total
