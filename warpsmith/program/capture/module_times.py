"""In the program's process: the modules that a step calls, their inputs, and their share of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.tensors import uses_gpu

if TYPE_CHECKING:
    from torch import nn

_Mark = Any
"""A CUDA event, or seconds."""


@dataclass
class ModuleCalls:
    """Calls of one module in one step."""

    path: str
    module: nn.Module
    spans: list[tuple[_Mark, _Mark]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    """Inputs of each call: shapes, dtypes and whether they need gradients."""
    reason: str = ""
    """Reason why the calls show that the module cannot be captured by itself; empty if there is none."""
    begins: list[_Mark] = field(default_factory=list)
    """Beginnings of calls that still run."""


class ModuleTimer:
    """Timer of modules and of the backward pass over one step."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._gpu = uses_gpu()
        self._calls = {id(module): ModuleCalls(path, module) for path, module in modules.items()}
        self._backward: list[tuple[_Mark, _Mark]] = []
        self._outermost: list[tuple[_Mark, _Mark]] = []
        self._depth = 0

    def run(self, step: Callable[[], object]) -> list[dict[str, Any]]:
        """Run one step and return the fields of `GraphModule` for each module, in the order of its modules."""
        import torch

        with self._hooks():
            begin = self._mark()
            step()
            end = self._mark()
        if self._gpu:
            torch.cuda.synchronize()
        whole = self._seconds([(begin, end)])
        forward, backward = self._seconds(self._outermost), self._seconds(self._backward)
        factor = 1 + backward / forward if forward else 1.0
        return [
            {
                "name": calls.path,
                "kind": type(calls.module).__name__,
                "calls": len(calls.spans),
                "share": min(1.0, self._seconds(calls.spans) * factor / whole) if whole else 0.0,
                "alike": _signature(calls),
                "reason": self._reason(calls),
            }
            for calls in self._calls.values()
            if calls.spans
        ]

    def _reason(self, calls: ModuleCalls) -> str:
        """Return why a module cannot be captured by itself; empty if nothing is known against it."""
        if calls.reason:
            return calls.reason
        if len(calls.spans) > 1 and self._backward:
            return "called more than once before the backward pass"
        if len(set(calls.inputs)) > 1:
            return "called with different inputs in one step"
        if any(buffer.requires_grad for buffer in calls.module.buffers()):
            return "one of its buffers needs gradients"
        return ""

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        """Time modules and `torch.autograd.backward` in this block."""
        import torch
        from torch.nn.modules import module as hooks

        backward = torch.autograd.backward

        def timed_backward(*args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            begin = self._mark()
            backward(*args, **options)
            self._backward.append((begin, self._mark()))

        with ExitStack() as stack:
            entering = hooks.register_module_forward_pre_hook(self._enter)
            leaving = hooks.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True)
            # PyTorch's own `remove` forgets one entry of a hook with both options: modules would count as hooked.
            stack.callback(hooks._global_forward_hooks_with_kwargs.pop, leaving.id, None)
            for handle in (entering, leaving):
                stack.callback(handle.remove)
            torch.autograd.backward = timed_backward
            stack.callback(setattr, torch.autograd, "backward", backward)
            yield

    def _enter(self, module: nn.Module, _: Any) -> None:  # noqa: ANN401
        self._depth += 1
        calls = self._calls.get(id(module))
        if calls:
            calls.begins.append(self._mark())

    def _leave(
        self, module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any], result: object
    ) -> None:
        self._depth -= 1
        calls = self._calls.get(id(module))
        if calls is None or not calls.begins:
            return
        calls.spans.append((calls.begins.pop(), self._mark()))
        calls.inputs.append(_describe_inputs(arguments))
        calls.reason = calls.reason or _refusal(arguments, options, result)
        if self._depth == 0:
            self._outermost.append(calls.spans[-1])

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


def list_modules(outermost: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
    """List every module once, by path: `model`, `model.blocks.0`."""
    modules: dict[str, nn.Module] = {}
    visited: set[int] = set()
    for name, outer in outermost.items():
        for path, module in outer.named_modules(prefix=name):
            if id(module) not in visited:
                visited.add(id(module))
                modules[path] = module
    return modules


def _describe_inputs(arguments: tuple[Any, ...]) -> str:
    import torch

    return ", ".join(
        f"{tuple(value.shape)} {value.dtype} {value.requires_grad}"
        if isinstance(value, torch.Tensor)
        else type(value).__name__
        for value in arguments
    )


def _refusal(arguments: tuple[Any, ...], options: dict[str, Any], result: object) -> str:
    """Return why `make_graphed_callables` refuses such a call; empty if it does not."""
    import torch
    from torch.utils import _pytree

    if options:
        return f"called with keyword arguments ({', '.join(options)})"
    if not all(isinstance(leaf, torch.Tensor) for leaf in _pytree.arg_tree_leaves(*arguments)):
        return "called with an argument that is no tensor"
    if not all(isinstance(leaf, torch.Tensor) for leaf in _pytree.tree_leaves(result)):
        return "returns a value that is no tensor"
    return ""


def _signature(calls: ModuleCalls) -> str:
    parameters = [f"{name} {tuple(value.shape)} {value.dtype}" for name, value in calls.module.named_parameters()]
    return f"{type(calls.module).__name__}({'; '.join([*sorted(set(calls.inputs)), *parameters])})"
