"""Audit of one call: the PyTorch operators that a candidate dispatches in place of its own kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from warpsmith.lab.workers import dispatch, fresh_memory

_MOVES = fresh_memory.ALLOCATES | frozenset(
    """
    zeros zeros_like new_zeros ones ones_like new_ones
    full full_like new_full fill fill_ zero zero_ arange linspace scalar_tensor lift_fresh
    detach alias clone copy_ _to_copy to view _unsafe_view reshape _reshape_alias as_strided t transpose
    permute expand squeeze unsqueeze slice select narrow split split_with_sizes unbind chunk cat stack
    contiguous resize_ set_ pin_memory is_pinned record_stream item _local_scalar_dense view_as_real unfold
    flatten movedim constant_pad_nd equal
    """.split()  # noqa: SIM905 - one line of seven names reads better than seven lines
)
"""Operators that allocate, arrange or move memory; they do no arithmetic of the operator under test."""


@contextmanager
def record_dispatch() -> Iterator[dict[str, int]]:
    """Record the operators that PyTorch dispatches on this thread, with the number of elements that each touches.

    The dictionary is filled while the operators run.
    """
    import torch
    from torch.utils._pytree import tree_leaves

    elements: dict[str, int] = defaultdict(int)

    def count(name: str, arguments: object, result: object) -> None:
        touched = [leaf for leaf in tree_leaves((arguments, result)) if isinstance(leaf, torch.Tensor)]
        elements[name] += max((tensor.numel() for tensor in touched), default=0)

    with dispatch.observe_operators(count):
        yield elements


def computing_operators(operators: Mapping[str, int]) -> dict[str, int]:
    """Keep the operators that compute, such as `aten.softmax`, sorted by the elements they touch, largest
    first."""
    computing = {name: count for name, count in operators.items() if not _moves(name)}
    return dict(sorted(computing.items(), key=lambda pair: -pair[1]))


def _moves(name: str) -> bool:
    space, _, operator = name.partition(".")
    return space in ("aten", "prim") and operator in _MOVES
