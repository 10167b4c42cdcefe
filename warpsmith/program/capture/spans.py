"""In the program's process: which modules a step calls, with what, and their share of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.recorder import uses_gpu

if TYPE_CHECKING:
    from torch import nn

_Mark = Any
"""A CUDA event, or seconds."""


@dataclass
class Called:
    """A module's calls in one step."""

    name: str
    module: nn.Module
    spans: list[tuple[_Mark, _Mark]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    """Of each call, what it was given: shapes, dtypes, whether gradients are wanted."""
    reason: str = ""
    """Why it cannot be captured by itself, as far as its call tells."""
    begun: list[_Mark] = field(default_factory=list)


class Spans:
    """Time in modules and in the backward pass, over the steps that run while it is `watching`."""

    def __init__(self, named: Mapping[str, nn.Module]) -> None:

        self._gpu = uses_gpu()
        self._called = {id(module): Called(name, module) for name, module in named.items()}
        self._backward: list[tuple[_Mark, _Mark]] = []
        self._outer: list[tuple[_Mark, _Mark]] = []
        self._depth = 0

    def run(self, step: Callable[[], object]) -> list[dict[str, Any]]:
        """Run one step; the modules that it calls, in the order of their first calls."""
        import torch

        with self._watching():
            begin = self._mark()
            step()
            end = self._mark()
        if self._gpu:
            torch.cuda.synchronize()
        whole = self._seconds([(begin, end)])
        forward, backward = self._seconds(self._outer), self._seconds(self._backward)
        grows = 1 + backward / forward if forward else 1.0
        return [
            {
                "name": called.name,
                "kind": type(called.module).__name__,
                "calls": len(called.spans),
                "share": min(1.0, self._seconds(called.spans) * grows / whole) if whole else 0.0,
                "alike": _signature(called),
                "reason": self._reason(called),
            }
            for called in self._called.values()
            if called.spans
        ]

    def _reason(self, called: Called) -> str:
        if called.reason:
            return called.reason
        if len(called.spans) > 1 and self._backward:
            return "called more than once before the backward pass"
        if len(set(called.inputs)) > 1:
            return "called with different inputs in one step"
        if any(buffer.requires_grad for buffer in called.module.buffers()):
            return "a buffer of it wants gradients"
        return "" if any(True for _ in called.module.children()) or called.spans else "never called"

    @contextmanager
    def _watching(self) -> Iterator[None]:
        import torch
        from torch.nn.modules import module as hooks

        backward = torch.autograd.backward

        def timed(*args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            begin = self._mark()
            backward(*args, **options)
            self._backward.append((begin, self._mark()))

        with ExitStack() as stack:
            entering = hooks.register_module_forward_pre_hook(self._enter)
            leaving = hooks.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True)
            # Of a hook with both, PyTorch's own `remove` forgets one: modules would count as hooked for good.
            stack.callback(hooks._global_forward_hooks_with_kwargs.pop, leaving.id, None)
            for handle in (entering, leaving):
                stack.callback(handle.remove)
            torch.autograd.backward = timed
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield

    def _enter(self, module: nn.Module, _: Any) -> None:  # noqa: ANN401
        self._depth += 1
        called = self._called.get(id(module))
        if called:
            called.begun.append(self._mark())

    def _leave(self, module: nn.Module, given: tuple[Any, ...], options: dict[str, Any], result: object) -> None:
        self._depth -= 1
        called = self._called.get(id(module))
        if called is None or not called.begun:
            return
        called.spans.append((called.begun.pop(), self._mark()))
        called.inputs.append(_inputs(given))
        called.reason = called.reason or _unfit(given, options, result)
        if self._depth == 0:
            self._outer.append(called.spans[-1])

    def _mark(self) -> _Mark:
        import torch

        if not self._gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _seconds(self, spans: list[tuple[_Mark, _Mark]]) -> float:
        if self._gpu:
            return sum(float(begin.elapsed_time(end)) / 1e3 for begin, end in spans)
        return sum(float(end - begin) for begin, end in spans)


def named(outermost: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """Every module once, by its path: `model`, `model.blocks.0`."""
    found: dict[str, nn.Module] = {}
    seen: set[int] = set()
    for name, outer in outermost.items():
        for path, module in outer.named_modules(prefix=name):
            if id(module) not in seen:
                seen.add(id(module))
                found[path] = module
    return found


def _inputs(given: tuple[Any, ...]) -> str:
    import torch

    return ", ".join(
        f"{tuple(each.shape)} {each.dtype} {each.requires_grad}"
        if isinstance(each, torch.Tensor)
        else type(each).__name__
        for each in given
    )


def _unfit(given: tuple[Any, ...], options: dict[str, Any], result: object) -> str:
    """Why `make_graphed_callables` does not take such a call; empty: it does."""
    import torch
    from torch.utils import _pytree

    if options:
        return f"called with keyword arguments ({', '.join(options)})"
    if not all(isinstance(leaf, torch.Tensor) for leaf in _pytree.arg_tree_leaves(*given)):
        return "called with something that is no tensor"
    if not all(isinstance(leaf, torch.Tensor) for leaf in _pytree.tree_leaves(result)):
        return "returns something that is no tensor"
    return ""


def _signature(called: Called) -> str:
    parameters = [f"{name} {tuple(each.shape)} {each.dtype}" for name, each in called.module.named_parameters()]
    return f"{type(called.module).__name__}({'; '.join([*sorted(set(called.inputs)), *parameters])})"
