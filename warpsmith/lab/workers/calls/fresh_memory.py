"""Content of the tensors that a call allocates, which is otherwise left to chance."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from warpsmith.lab.workers.calls import dispatch, output_guards

if TYPE_CHECKING:
    import torch

FreshContent = Literal["", "poison", "numbers", "earlier"]
"""Content of new tensors: whatever was there, poison, random numbers, or the last results on the slot."""


@contextmanager
def fill_new_memory(content: FreshContent, earlier: Sequence[Any]) -> Iterator[None]:
    """Fill the memory that a call allocates; where that is no earlier result, guard it too.

    An interpreter's tensors stay without guards: host code must not read them, and these can be read.

    Args:
        content: what it holds.
        earlier: the last results on the slot.

    Raises:
        IndexError: the call wrote beyond it.
    """
    if content == "earlier":
        with prefilled_memory(earlier):
            yield
    elif content:
        filled = poisoned_memory() if content == "poison" else numbered_memory()
        is_interpreted = "TRITON_INTERPRET" in os.environ
        with filled, nullcontext() if is_interpreted else output_guards.guarded_memory():
            yield
    else:
        yield


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Fill new tensors with NaN or the largest integers, so that an element that was never written cannot pass by
    luck."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    switch = (
        torch._C._set_deterministic_algorithms
    )  # The public function imports Inductor first, which takes two seconds.
    switch(True, warn_only=True)
    try:
        yield
    finally:
        switch(before)


def draw_leftovers(like: torch.Tensor) -> torch.Tensor:
    """Return random numbers of a tensor's shape, as they are left of other calls: normal ones, or integers.

    The state of PyTorch's random numbers stays as it is.
    """
    import torch

    chance = torch.Generator(like.device).manual_seed(secrets.randbits(62))
    if like.dtype.is_floating_point:
        return torch.randn(like.shape, device=like.device, generator=chance).to(like.dtype)
    return torch.randint(0, 100, like.shape, device=like.device, generator=chance).to(like.dtype)


@contextmanager
def numbered_memory() -> Iterator[None]:
    """Fill new tensors on this thread with random numbers, so that no version can tell this call by its memory."""

    def fill(name: str, _: object, tensor: torch.Tensor) -> None:
        if dispatch.allocates(name):
            tensor.copy_(draw_leftovers(tensor))

    with dispatch.observe_operators(fill):
        yield


@contextmanager
def prefilled_memory(earlier: Sequence[Any]) -> Iterator[None]:
    """Fill new tensors on this thread with copies of earlier results of their shape and type.

    An element that was never written then looks right. Tensors of one shape and type take the results in turn.
    """
    import torch

    results = [value.clone() for value in earlier if type(value) is torch.Tensor]

    def prefill(name: str, _: object, tensor: torch.Tensor) -> None:
        if dispatch.allocates(name):
            _prefill(tensor, results)

    with dispatch.observe_operators(prefill):
        yield


def _prefill(tensor: torch.Tensor, results: list[torch.Tensor]) -> None:
    kind = (tensor.shape, tensor.dtype, tensor.device)
    for index, value in enumerate(results):
        if (value.shape, value.dtype, value.device) == kind:
            tensor.copy_(value)
            results.append(results.pop(index))
            return
