"""What a solution has PyTorch's libraries do in its place: operators heard at the dispatcher during one call."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

SHARE = 0.25
"""Elements that computing operators may touch, as a share of the call's inputs and outputs."""

_MOVES = frozenset(
    """
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones
    ones_like new_ones full full_like new_full fill fill_ zero zero_ arange linspace scalar_tensor lift_fresh
    detach alias clone copy_ _to_copy to view _unsafe_view reshape _reshape_alias as_strided t transpose
    permute expand squeeze unsqueeze slice select narrow split split_with_sizes unbind chunk cat stack
    contiguous resize_ set_ pin_memory is_pinned record_stream item _local_scalar_dense view_as_real unfold
    flatten movedim constant_pad_nd equal
    """.split()  # noqa: SIM905 - one line of seven names reads better than seven lines
)
"""Operators that lay out, make or move memory: they do none of an operator's arithmetic."""


class Listening:
    """While it is entered, the operators that PyTorch dispatches on this thread, with the elements they touch."""

    def __init__(self) -> None:
        self.elements: dict[str, int] = defaultdict(int)
        self._mode: Any = None

    def __enter__(self) -> Listening:
        self._mode = _mode(self.elements)
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)


def computing(operators: Mapping[str, int]) -> dict[str, int]:
    """Those of the operators that compute, `aten.softmax` to elements; the largest first."""
    found = {name: count for name, count in operators.items() if not _moves(name)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _moves(name: str) -> bool:
    space, _, operator = name.partition(".")
    return space in ("aten", "prim") and operator in _MOVES


def _mode(elements: dict[str, int]) -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Heard(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return "torch._dynamo" in sys.modules  # nothing compiles without it, and its import takes two seconds

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = function(*args, **(kwargs or {}))
            touched = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
            name = f"{function.namespace}.{function._schema.name.partition('::')[2]}"
            elements[name] += max((tensor.numel() for tensor in touched), default=0)
            return result

    return Heard()  # type: ignore[no-untyped-call]
