"""In the program's process: what is hooked while steps are watched, and unhooked after."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.program.capture.recorder import Recorder

_SYNCHRONIZE, _EMPTY = "`torch.cuda.synchronize()`", "`torch.cuda.empty_cache()`"


@contextmanager
def watching(recorder: Recorder) -> Iterator[None]:
    """The recorder hears of all that runs in this block."""
    import torch
    from torch.nn.modules import module as hooks
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    functions, operators = _modes(recorder)
    with ExitStack() as stack:
        for handle in (
            hooks.register_module_forward_pre_hook(recorder.enter),
            hooks.register_module_forward_hook(recorder.leave, always_call=True),
            register_optimizer_step_pre_hook(recorder.begin_update),
            register_optimizer_step_post_hook(recorder.end_update),
        ):
            stack.callback(handle.remove)
        stack.enter_context(_telling(recorder, torch, "manual_seed", "seed", "`torch.manual_seed(…)`"))
        stack.enter_context(_loaders(recorder))
        if recorder.gpu:
            stack.enter_context(_telling(recorder, torch.cuda, "synchronize", "synchronize", _SYNCHRONIZE))
            stack.enter_context(_telling(recorder, torch.cuda, "empty_cache", "allocator", _EMPTY))
            stack.enter_context(_waits(recorder))
        stack.enter_context(functions)
        stack.enter_context(operators)
        yield


@contextmanager
def _telling(recorder: Recorder, owner: Any, name: str, kind: str, what: str) -> Iterator[None]:  # noqa: ANN401
    """Each call of a function is told."""
    original = getattr(owner, name)

    def telling(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - PyTorch's
        recorder.tell(kind, what, "certain" if kind == "synchronize" else "likely")
        return original(*args, **options)

    with _replaced(owner, name, telling):
        yield


@contextmanager
def _loaders(recorder: Recorder) -> Iterator[None]:
    """Each batch that a DataLoader gives is told."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter as Batches

    original = Batches.__next__

    def loading(batches: Any) -> object:  # noqa: ANN401 - PyTorch's
        return recorder.loaded(lambda: original(batches))

    with _replaced(Batches, "__next__", loading):
        yield


@contextmanager
def _waits(recorder: Recorder) -> Iterator[None]:
    """PyTorch warns of its waits for the device: each is told."""
    import torch

    def showing(message: Warning | str, *_: object, **__: object) -> None:
        if "synchronizing CUDA operation" in str(message):
            recorder.waits()

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = showing
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


@contextmanager
def _replaced(owner: Any, name: str, replacement: object) -> Iterator[None]:  # noqa: ANN401
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _modes(recorder: Recorder) -> tuple[Any, Any]:
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            options = kwargs or {}
            name = getattr(func, "__name__", "")
            return recorder.called(name, args, options, lambda: func(*args, **options))

    class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            options = kwargs or {}
            if torch.is_inference_mode_enabled():  # there, what is made of other operators comes as one
                with self:
                    result = func.decompose(*args, **options)
                if result is not NotImplemented:
                    return result
            result = func(*args, **options)
            recorder.ran(func, args, options, result)
            return result

    return Functions(), Operators()  # type: ignore[no-untyped-call]
