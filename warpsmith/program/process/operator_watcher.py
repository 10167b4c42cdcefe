"""In the program's process: every call of an operator in some steps, with its time and what it was given."""

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
"""The device is kept busy for so long, a tenth of a millisecond, while the host issues the call that is timed."""


class SignatureCalls:
    """Calls of one operator with one signature."""

    def __init__(self, arguments: list[dict[str, Any]]) -> None:
        self.arguments = arguments
        """`core.extraction.Argument` each."""
        self.outputs: list[dict[str, Any] | None] = []
        """`core.extraction.TensorSeen` each, or None."""
        self.count = 0
        """How many."""
        self.times: list[Any] = []
        """Of each: seconds, or a pair of events."""
        self.gradients = False
        """Whether autograd records the operator itself."""

    @property
    def seconds(self) -> float:
        """All of them, by their median: a call that was interrupted says nothing. The device has finished."""
        times = [one if isinstance(one, float) else one[0].elapsed_time(one[1]) / 1e3 for one in self.times]
        return statistics.median(times) * self.count


class OperatorWatcher:
    """What was called while it watched."""

    def __init__(self, wanted: Iterable[str], weights: Iterable[Any]) -> None:
        """`wanted`: operators without overload whose tensors' values are looked at; `weights`: parameters."""
        self.found: dict[str, dict[str, SignatureCalls]] = defaultdict(dict)
        """By operator and signature."""
        self._wanted = set(wanted)
        self._weights = {one.untyped_storage().data_ptr() for one in weights}
        self._inside = False

    def call(self, operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run one call and note it; what a composite operator calls is noted without a time of its own."""
        if self._inside:
            return run()
        values = operator_values.bind_arguments(operator, args, kwargs)
        try:
            arguments = [self._argument(one) for one in values]
        except TypeError:
            arguments = []
        key = json.dumps(arguments)
        name = operator.name()
        seen = self.found[name].get(key)
        if seen is None:
            seen = self.found[name][key] = SignatureCalls(arguments)
            if arguments and name.partition(".")[0] in self._wanted:
                self._whole(lambda: self._look(arguments, values))
        seen.count += 1
        result = self._timed(seen, run)
        results = result if isinstance(result, tuple | list) else (result,)
        seen.outputs = [_describe_tensor(one) for one in results]
        seen.gradients |= any(getattr(one, "requires_grad", False) for one in results)
        return result

    def composite(self, operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """As `call`, of an operator that consists of others; those are timed as a part of it."""
        if self._inside:
            return run()
        return self.call(operator, args, kwargs, lambda: self._whole(run))

    def _whole(self, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Run something unwatched: to be asked at each of its operators would cost more than those."""
        from torch.utils._python_dispatch import _disable_current_modes

        self._inside = True
        try:
            with _disable_current_modes():
                return run()
        finally:
            self._inside = False

    def _timed(self, seen: SignatureCalls, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        import torch

        if not gather.gpu_initialized() or torch.cuda.is_current_stream_capturing():
            begin = time.perf_counter()
            result = run()
            seen.times.append(time.perf_counter() - begin)
            return result
        events: Any = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        torch.cuda._sleep(_QUIET_CYCLES)  # type: ignore[no-untyped-call]
        events[0].record()
        result = run()
        events[1].record()
        seen.times.append(tuple(events))
        return result

    def _argument(self, given: OperatorArgument) -> dict[str, Any]:
        import torch

        value = given.value
        found: dict[str, Any] = {"name": given.argument, "keyword": given.keyword, "element": given.element}
        if isinstance(value, torch.Tensor):
            seen = _describe_tensor(value)
            if seen is None:
                raise TypeError(f"a {value.layout} tensor")
            found["tensor"] = {**seen, "weight": self._is_weight(value)}
            return found
        found["source"] = operator_values.argument_source(value)
        if isinstance(value, float):
            found["number"] = value if abs(value) < float("inf") else None
        return found

    def _is_weight(self, value: Any) -> bool:  # noqa: ANN401
        try:
            return value.untyped_storage().data_ptr() in self._weights
        except (RuntimeError, NotImplementedError):  # a tensor without memory of its own
            return False

    def _look(self, arguments: list[dict[str, Any]], values: list[OperatorArgument]) -> None:
        """Note the range of the values, by which inputs like them are drawn."""
        import torch

        for argument, (*_, value) in zip(arguments, values, strict=True):
            seen = argument.get("tensor")
            if seen is None or not value.numel() or value.is_complex():
                continue
            with torch.no_grad():
                plain = value.detach().double()
                finite = plain[plain.isfinite()]
                seen["masked"] = bool((plain == float("-inf")).any())
                if finite.numel():
                    seen["low"], seen["high"] = float(finite.min()), float(finite.max())


def _describe_tensor(value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    """A tensor's facts; None of what is no plain tensor or undefined."""
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
def watch_operators(watch: OperatorWatcher, whole: Iterable[Any]) -> Iterator[None]:
    """Note every operator that PyTorch dispatches until the block ends, on any thread of autograd.

    `whole` are operators that it takes apart before.
    """
    with _watch_composites(watch, whole), _dispatch_mode(watch):
        yield


def _dispatch_mode(watch: OperatorWatcher) -> AbstractContextManager[object]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            named = kwargs or {}
            return watch.call(func, args, named, lambda: func(*args, **named))

    return Mode()  # type: ignore[no-untyped-call]


@contextmanager
def _watch_composites(watch: OperatorWatcher, whole: Iterable[Any]) -> Iterator[None]:
    """Note operators that PyTorch takes apart before a dispatch mode sees them."""
    from warpsmith.program.process import override

    with override.override_library() as library:
        for operator in whole:
            override.override_operator(library, operator, watch.composite)
        yield
