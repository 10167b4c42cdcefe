"""In the program's process: watch every call of an operator, with its arguments and its time."""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from warpsmith.program.process import gather, operator_values
from warpsmith.program.process.operator_values import OperatorArgument

_QUIET_CYCLES = 200_000
"""Cycles that keep the device busy, about 0.1 ms, while the host issues the call that is timed."""


class SignatureCalls:
    """Calls of one operator with one signature."""

    def __init__(self, arguments: list[dict[str, Any]]) -> None:
        self.arguments = arguments
        """Fields of an `Argument` of the extraction, for each argument."""
        self.outputs: list[dict[str, Any] | None] = []
        """Fields of a `TensorSeen` for each result; None for a result that is not a plain tensor."""
        self.count = 0
        """Number of calls."""
        self.times: list[Any] = []
        """Seconds or a pair of CUDA events for each call."""
        self.gradients = False
        """True if autograd records the operator itself."""

    @property
    def seconds(self) -> float:
        """Return the median time of a call times their number; the device must have finished.

        The median leaves out calls that were interrupted.
        """
        times = [time if isinstance(time, float) else time[0].elapsed_time(time[1]) / 1e3 for time in self.times]
        return statistics.median(times) * self.count


class OperatorWatcher:
    """Watcher of operator calls; `watch_operators` connects it to PyTorch."""

    def __init__(self, inspected: Iterable[str], weights: Iterable[Any]) -> None:
        """Note ranges of values for the operators `inspected`, without overload; `weights` are parameters."""
        self.calls: dict[str, dict[str, SignatureCalls]] = defaultdict(dict)
        """Calls by operator and signature."""
        self._inspected = set(inspected)
        self._weights = {weight.untyped_storage().data_ptr() for weight in weights}
        self._inside = False

    def call(self, operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run one call and note it; calls inside a composite operator only run."""
        if self._inside:
            return run()
        values = operator_values.bind_arguments(operator, args, kwargs)
        try:
            arguments = [self._describe_argument(value) for value in values]
        except TypeError:
            arguments = []
        key = json.dumps(arguments)
        name = operator.name()
        calls = self.calls[name].get(key)
        if calls is None:
            calls = self.calls[name][key] = SignatureCalls(arguments)
            if arguments and name.partition(".")[0] in self._inspected:
                self._run_unwatched(lambda: self._add_ranges(arguments, values))
        calls.count += 1
        result = self._time(calls, run)
        results = result if isinstance(result, tuple | list) else (result,)
        calls.outputs = [_describe_tensor(value) for value in results]
        calls.gradients |= any(getattr(value, "requires_grad", False) for value in results)
        return result

    def composite(self, operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run and note a call of an operator that consists of others; their time is part of it."""
        if self._inside:
            return run()
        return self.call(operator, args, kwargs, lambda: self._run_unwatched(run))

    def _run_unwatched(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run without dispatch modes: their calls would cost more than the operators inside."""
        from torch.utils._python_dispatch import _disable_current_modes

        self._inside = True
        try:
            with _disable_current_modes():
                return run()
        finally:
            self._inside = False

    def _time(self, calls: SignatureCalls, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        import torch

        if not gather.gpu_initialized() or torch.cuda.is_current_stream_capturing():
            begin = time.perf_counter()
            result = run()
            calls.times.append(time.perf_counter() - begin)
            return result
        events: Any = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        torch.cuda._sleep(_QUIET_CYCLES)  # type: ignore[no-untyped-call]
        events[0].record()
        result = run()
        events[1].record()
        calls.times.append(tuple(events))
        return result

    def _describe_argument(self, argument: OperatorArgument) -> dict[str, Any]:
        import torch

        value = argument.value
        fields: dict[str, Any] = {
            "name": argument.argument, "keyword": argument.keyword, "element": argument.element
        }  # fmt: skip
        if isinstance(value, torch.Tensor):
            tensor = _describe_tensor(value)
            if tensor is None:
                raise TypeError(f"a {value.layout} tensor")
            fields["tensor"] = {**tensor, "weight": self._is_weight(value)}
            return fields
        fields["source"] = operator_values.argument_source(value)
        if isinstance(value, float):
            fields["number"] = value if abs(value) < float("inf") else None
        return fields

    def _is_weight(self, value: Any) -> bool:  # noqa: ANN401
        try:
            return value.untyped_storage().data_ptr() in self._weights
        except (RuntimeError, NotImplementedError):  # a tensor without memory
            return False

    def _add_ranges(self, arguments: list[dict[str, Any]], values: list[OperatorArgument]) -> None:
        """Add the range of the values to each tensor; inputs of the definition are drawn from it."""
        for argument, (*_, value) in zip(arguments, values, strict=True):
            if (tensor := argument.get("tensor")) is not None:
                tensor |= value_range(value)


def value_range(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a tensor
    """Return the fields of a `RecordedTensor` about the values of a tensor; none if it is empty or complex."""
    import torch

    if not value.numel() or value.is_complex():
        return {}
    with torch.no_grad():
        plain = value.detach().double()
        finite = plain[plain.isfinite()]
        ranges: dict[str, Any] = {"masked": bool((plain == float("-inf")).any())}
        if finite.numel():
            ranges |= {"low": float(finite.min()), "high": float(finite.max())}
    return ranges


def _describe_tensor(value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """Return shape, strides, dtype and device of a tensor; None if the value is not a plain tensor."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    return {
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": value.device.type,
    }


@contextmanager
def watch_operators(watcher: OperatorWatcher, composites: Iterable[Any]) -> Iterator[None]:
    """Note every operator that PyTorch dispatches until the block ends, on any thread of autograd.

    `composites` are noted as a whole, though PyTorch replaces them with others before dispatch.
    """
    with _watch_composites(watcher, composites), _dispatch_mode(watcher):
        yield


def _dispatch_mode(watcher: OperatorWatcher) -> AbstractContextManager[object]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            options = kwargs or {}
            return watcher.call(func, args, options, lambda: func(*args, **options))

    return Mode()  # type: ignore[no-untyped-call]


@contextmanager
def _watch_composites(watcher: OperatorWatcher, composites: Iterable[Any]) -> Iterator[None]:
    """Note operators that PyTorch replaces with others before a dispatch mode sees them."""
    from warpsmith.program.process import override

    with override.override_library() as library:
        for operator in composites:
            override.override_operator(library, operator, watcher.composite)
        yield
