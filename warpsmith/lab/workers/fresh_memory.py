"""Fresh memory: what a call finds in the tensors that it allocates. Left to luck that is anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from warpsmith.lab.workers import dispatch

if TYPE_CHECKING:
    import torch

FreshContent = Literal["", "poison", "earlier"]
"""As it comes; poisoned; or holding what the last call on the slot returned."""

ALLOCATES = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
"""PyTorch's operators that give memory as it comes."""


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """NaN, and the largest integers: what was not written cannot pass by luck."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    switch = torch._C._set_deterministic_algorithms  # the public way imports Inductor first: two seconds
    switch(True, warn_only=True)
    try:
        yield
    finally:
        switch(before)


@contextmanager
def prefilled_memory(earlier: Sequence[Any]) -> Iterator[None]:
    """Copies of these results, where tensors of their shape and type are allocated on this thread: what was not
    written looks right. Tensors of one kind have them in turn."""
    import torch

    left = [value.clone() for value in earlier if type(value) is torch.Tensor]

    def leave(name: str, _: object, made: torch.Tensor) -> None:
        if name.removeprefix("aten.") in ALLOCATES:
            _prefill(made, left)

    with dispatch.observe_operators(leave):
        yield


def _prefill(made: torch.Tensor, left: list[torch.Tensor]) -> None:
    kind = (made.shape, made.dtype, made.device)
    for at, value in enumerate(left):
        if (value.shape, value.dtype, value.device) == kind:
            made.copy_(value)
            left.append(left.pop(at))
            return
