"""In the program's process: hooks into PyTorch while steps are watched, removed afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.program.capture.models import Certainty
    from warpsmith.program.capture.watcher import StepWatcher


@contextmanager
def watch_steps(watcher: StepWatcher) -> Iterator[None]:
    """Report everything that runs in this block to the watcher."""
    import torch
    from torch.nn.modules import module as hooks
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    functions, operators = _dispatch_modes(watcher)
    reported: list[tuple[Any, str, str, Certainty, str]] = [
        (torch, "manual_seed", "seed", "likely", "`torch.manual_seed(…)`")
    ]
    if watcher.gpu:
        reported += [
            (torch.cuda, "synchronize", "synchronize", "certain", "`torch.cuda.synchronize()`"),
            (torch.cuda, "empty_cache", "allocator", "likely", "`torch.cuda.empty_cache()`"),
        ]
    with ExitStack() as stack:
        for handle in (
            hooks.register_module_forward_pre_hook(watcher.enter_module),
            hooks.register_module_forward_hook(watcher.leave_module, always_call=True),
            register_optimizer_step_pre_hook(watcher.begin_update),
            register_optimizer_step_post_hook(watcher.end_update),
        ):
            stack.callback(handle.remove)
        for owner, name, kind, certainty, description in reported:
            stack.enter_context(_report_calls(watcher, owner, name, kind, certainty, description))
        stack.enter_context(_watch_loaders(watcher))
        if watcher.gpu:
            stack.enter_context(_watch_waits(watcher))
        stack.enter_context(functions)
        stack.enter_context(operators)
        yield


@contextmanager
def _report_calls(
    watcher: StepWatcher,
    owner: Any,  # noqa: ANN401 - a module of PyTorch's
    name: str,
    kind: str,
    certainty: Certainty,
    description: str,
) -> Iterator[None]:
    """Report each call of a function of `owner`."""
    original = getattr(owner, name)

    def reporting(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - PyTorch's
        watcher.report(kind, description, certainty)
        return original(*args, **options)

    with _replace_attribute(owner, name, reporting):
        yield


@contextmanager
def _watch_loaders(watcher: StepWatcher) -> Iterator[None]:
    """Report each batch that a DataLoader yields."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter as Batches

    original = Batches.__next__

    def fetching(batches: Any) -> object:  # noqa: ANN401 - PyTorch's
        return watcher.fetch_batch(lambda: original(batches))

    with _replace_attribute(Batches, "__next__", fetching):
        yield


@contextmanager
def _watch_waits(watcher: StepWatcher) -> Iterator[None]:
    """Have PyTorch warn of its waits for the device, and report each."""
    import torch

    def show_warning(message: Warning | str, *_: object, **__: object) -> None:
        if "synchronizing CUDA operation" in str(message):
            watcher.record_wait()

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show_warning
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


@contextmanager
def _replace_attribute(owner: Any, name: str, replacement: object) -> Iterator[None]:  # noqa: ANN401
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _dispatch_modes(watcher: StepWatcher) -> tuple[Any, Any]:
    """Return two modes: one sees calls of PyTorch's Python functions, the other every operator."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class FunctionMode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            options = kwargs or {}
            name = getattr(func, "__name__", "")
            return watcher.call_function(name, args, options, lambda: func(*args, **options))

    class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            options = kwargs or {}
            if torch.is_inference_mode_enabled():  # composite operators arrive undivided in inference mode
                with self:
                    result = func.decompose(*args, **options)
                if result is not NotImplemented:
                    return result
            result = func(*args, **options)
            watcher.record_operator(func, args, options, result)
            return result

    return FunctionMode(), OperatorMode()  # type: ignore[no-untyped-call]
