"""What a solution has PyTorch's libraries do in its place: operators heard at the dispatcher during one call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from warpsmith.lab.workers import dispatch, fresh_memory

SHARE = 0.25
"""Elements that computing operators may touch, as a share of the call's inputs and outputs."""

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
"""Operators that lay out, make or move memory: they do none of an operator's arithmetic."""


@contextmanager
def record_operators() -> Iterator[dict[str, int]]:
    """The operators that PyTorch dispatches on this thread, to the elements they touch; filled as they run."""
    import torch
    from torch.utils._pytree import tree_leaves

    elements: dict[str, int] = defaultdict(int)

    def count(name: str, arguments: object, result: object) -> None:
        touched = [leaf for leaf in tree_leaves((arguments, result)) if isinstance(leaf, torch.Tensor)]
        elements[name] += max((tensor.numel() for tensor in touched), default=0)

    with dispatch.observe_operators(count):
        yield elements


def computing_operators(operators: Mapping[str, int]) -> dict[str, int]:
    """Those of the operators that compute, `aten.softmax` to elements; the largest first."""
    found = {name: count for name, count in operators.items() if not _moves(name)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _moves(name: str) -> bool:
    space, _, operator = name.partition(".")
    return space in ("aten", "prim") and operator in _MOVES
