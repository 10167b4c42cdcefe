"""Audit of a call: the PyTorch operators that a candidate dispatches in place of its own kernels."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from warpsmith.core import gate_rules
from warpsmith.lab.workers.calls import dispatch

_MOVES = dispatch.ALLOCATES | frozenset(
    """
    zeros zeros_like new_zeros ones ones_like new_ones
    full full_like new_full fill fill_ zero zero_ arange linspace scalar_tensor lift_fresh
    detach alias clone copy_ _to_copy to view _unsafe_view reshape _reshape_alias as_strided t transpose
    permute expand squeeze unsqueeze slice select narrow split split_with_sizes unbind chunk cat stack
    contiguous resize_ set_ pin_memory is_pinned record_stream item _local_scalar_dense view_as_real unfold
    flatten movedim constant_pad_nd equal result_type is_same_size can_cast resolve_conj resolve_neg
    type_as expand_as real conj positive requires_grad_ is_nonzero
    """.split()  # noqa: SIM905 - one line of seven names reads better than seven lines
)
"""Operators that allocate, arrange or move memory; they do no arithmetic of the operator under test."""


def operators_of_call(call: Callable[[], object]) -> dict[str, int]:
    """Call twice; return the operators that PyTorch dispatches in a call, with the elements that each touches.

    A dispatch mode hears the first call, on this thread. PyTorch's profiler hears the second one on all threads,
    since a candidate may leave the modes or call from a thread of its own.
    """
    dispatched, profiled = _dispatched_operators(call), _profiled_operators(call)
    return {name: max(dispatched[name], profiled[name]) for name in dispatched | profiled}


def without_library(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version's `run` that raises ValueError after a call of which PyTorch's operators computed too much.

    The probe listens to a call at one size; this listens to each.
    """
    import torch

    @functools.wraps(run)
    def call(*arguments: Any) -> Any:  # noqa: ANN401
        results: list[Any] = []
        computing = computing_operators(_dispatched_operators(lambda: results.append(run(*arguments))))
        elements = sum(each.numel() for each in arguments if isinstance(each, torch.Tensor))
        if computing and not is_little(computing, elements):
            name, count = next(iter(computing.items()))
            raise ValueError(f"PyTorch's {name} computes {count} elements of this call: a library does the work")
        return results[0]

    return call


def is_little(computing: Mapping[str, int], elements: int) -> bool:
    """Return True if operators compute little of a call with inputs of so many elements."""
    return sum(computing.values()) <= gate_rules.LIBRARY_SHARE * max(elements, gate_rules.LIBRARY_ELEMENTS)


def _dispatched_operators(call: Callable[[], object]) -> Counter[str]:
    import torch
    from torch.utils._pytree import tree_leaves

    elements: Counter[str] = Counter()

    def count(name: str, arguments: object, result: object) -> None:
        touched = [leaf for leaf in tree_leaves((arguments, result)) if isinstance(leaf, torch.Tensor)]
        elements[name] += max((tensor.numel() for tensor in touched), default=0)

    with dispatch.observe_operators(count):
        call()
    return elements


def _profiled_operators(call: Callable[[], object]) -> Counter[str]:
    import torch
    from torch._C._profiler import _ExperimentalConfig

    elements: Counter[str] = Counter()
    config = _ExperimentalConfig(profile_all_threads=True)
    with torch.autograd.profiler.profile(record_shapes=True, experimental_config=config) as profile:
        call()
    for event in profile.function_events:
        if _does_its_work(event):
            elements[_operator_of(event)] += _elements_of(event.input_shapes)
    return elements


def _does_its_work(event: Any) -> bool:  # noqa: ANN401 - a profiler's event
    """Return True for an operator that hands its work to no other one. Launches have no "::" in their names."""
    below = [child for child in event.cpu_children if "::" in child.name]
    if "::" not in event.name or not below:
        return "::" in event.name
    # Anybody may open a parent of any name, but what computes below it is heard. `argmax` only moves memory there.
    return not _is_composite(event.name) and all(map(_only_moves, below))


def _only_moves(event: Any) -> bool:  # noqa: ANN401
    """Return True for an operator that only moves memory, as do all below it."""
    below = (child for child in event.cpu_children if "::" in child.name)
    return _moves(_operator_of(event)) and all(map(_only_moves, below))


def _operator_of(event: Any) -> str:  # noqa: ANN401
    return str(event.name).replace("::", ".")


@functools.cache
def _is_composite(name: str) -> bool:
    """Return True for an operator that PyTorch makes of others, and for a name that it does not know."""
    import torch

    names = [each for each in torch._C._dispatch_get_all_op_names() if each.partition(".")[0] == name]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return not names or any(has_kernel(each, "CompositeImplicitAutograd") for each in names)


def _elements_of(shapes: Any) -> int:  # noqa: ANN401 - a list of shapes, or of lists of them
    """Return the elements of the largest tensor among the inputs of an operator."""
    if not isinstance(shapes, list | tuple) or not shapes:
        return 0
    if all(isinstance(size, int) for size in shapes):
        return prod(shapes)
    return max(map(_elements_of, shapes))


def computing_operators(operators: Mapping[str, int]) -> dict[str, int]:
    """Keep the operators that compute, such as `aten.softmax`, sorted by the elements they touch, largest
    first."""
    computing = {name: count for name, count in operators.items() if not _moves(name)}
    return dict(sorted(computing.items(), key=lambda pair: -pair[1]))


def _moves(name: str) -> bool:
    space, _, operator = name.partition(".")
    return space in ("aten", "prim") and operator in _MOVES
