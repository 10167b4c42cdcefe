"""In the program's process: record with PyTorch's profiler, and summarize the recording in figures.

This file imports only PyTorch and Python's library, like `gather`: a shell command's process loads it by path.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CallKey = tuple[str, str, tuple[str, ...]]
"""Name, shapes and dtypes that calls have in common."""

WHOLE_OPERATORS = ("aten::rms_norm", "aten::scaled_dot_product_attention", "aten::stack", "aten::embedding")
"""Operators that call others and are worth one kernel; `extract` does not list the operators inside."""

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution")
_DTYPE_NAMES = {"float": "float32", "double": "float64", "c10::BFloat16": "bfloat16", "c10::Half": "float16"}
_LOADER_EVENT, _OPTIMIZER_EVENT = "enumerate(DataLoader)", "Optimizer.step"
_ALLOCATIONS = ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cuMemCreate", "cuMemUnmap")
_REFUSAL = "the program starts torch.profiler itself; switch that off"


class ProfilerRecording:
    """Recording of a profiler with counts of training events; complete when `record_profile` ends."""

    def __init__(self, profiler: Any) -> None:  # noqa: ANN401 - PyTorch's
        self.profiler = profiler
        """Profiler of PyTorch."""
        self.counts: Counter[str] = Counter()
        """Number of backward passes and of optimizer steps."""
        self.closure_seconds = 0.0
        """Seconds in closures of optimizers, which run forward and backward passes inside of a step."""
        self.autocast: set[str] = set()
        """Dtypes of the autocast regions."""
        self.seconds = 0.0
        """Seconds that it ran."""


@contextlib.contextmanager
def record_profiler(*, record_shapes: bool) -> Iterator[ProfilerRecording]:
    """Record until the block ends, and refuse another profiler inside it, because PyTorch would crash."""
    import torch
    from torch.profiler import ProfilerActivity, profile, supported_activities

    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & set(supported_activities())  # type: ignore[no-untyped-call]
    profiler = profile(activities=activities, record_shapes=record_shapes, acc_events=True)
    recording = ProfilerRecording(profiler)
    profiler.start()
    begin = time.perf_counter()
    entries: tuple[tuple[type, str], ...] = (
        (torch.profiler.profile, "start"),
        (torch.autograd.profiler.profile, "__enter__"),
    )
    try:
        with _refuse_profilers(entries), _count_training(recording):
            yield recording
    finally:
        recording.seconds = time.perf_counter() - begin
        profiler.stop()  # PyTorch crashes at exit if the profiler still runs


def summarize_step(recording: ProfilerRecording) -> dict[str, Any]:
    """Return the fields of `ObservedStep` for everything that was recorded."""
    events = _profiler_events(recording)
    names: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    spent: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        name = str(event.name())
        names[name] += 1
        if name in _PRODUCTS:
            dtypes[_product_dtype(event.dtypes())] += 1
        category = next(
            (prefix for prefix in (_LOADER_EVENT, _OPTIMIZER_EVENT, *_ALLOCATIONS) if name.startswith(prefix)), ""
        )
        spent["allocations" if category in _ALLOCATIONS else category].append(event.duration_ns())
    operators = {name: count for name, count in names.most_common() if name.startswith("aten::")}
    return {
        "seconds": recording.seconds,
        "operators": operators,
        "times": _operator_seconds(recording),
        "products": dict(dtypes.most_common()),
        "collectives": {name: count for name, count in names.most_common() if name.startswith("c10d::")},
        "backwards": recording.counts["backwards"],
        "optimizer_steps": recording.counts["optimizer_steps"],
        "graph_launches": sum(count for name, count in names.items() if "GraphLaunch" in name),
        "loader_seconds": _median_total(spent[_LOADER_EVENT]),
        "optimizer_seconds": max(0.0, _median_total(spent[_OPTIMIZER_EVENT]) - recording.closure_seconds),
        "allocation_seconds": sum(spent["allocations"]) / 1e9,
        "autocast": sorted(recording.autocast),
        "shapes_vary": False,
    }


def replace_closure(
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of an optimizer's step with its closure wrapped; None if it has no closure."""
    optimizer, *rest = arguments
    if rest and callable(rest[0]):
        return (optimizer, wrap(rest[0]), *rest[1:]), dict(options)
    if callable(options.get("closure")):
        return arguments, {**options, "closure": wrap(options["closure"])}
    return None


def count_operator_calls(recording: ProfilerRecording) -> Counter[CallKey]:
    """Count calls by operator, shapes and dtypes, without those of data loaders."""
    events = _profiler_events(recording)
    loads = sorted(
        (event.start_ns(), event.start_ns() + event.duration_ns())
        for event in events
        if event.name().startswith(_LOADER_EVENT)
    )
    begins = [begin for begin, _ in loads]

    def is_loading(time: int) -> bool:
        index = bisect_right(begins, time) - 1
        return index >= 0 and time < loads[index][1]

    return Counter(
        (event.name(), str(event.shapes()), tuple(event.dtypes()))
        for event in events
        if event.name().startswith("aten::") and not is_loading(event.start_ns())
    )


def _median_total(nanoseconds: list[int]) -> float:
    """Return the median times the count, in seconds: the first event of a run also sets things up."""
    return statistics.median(nanoseconds) * len(nanoseconds) / 1e9 if nanoseconds else 0.0


def _profiler_events(recording: ProfilerRecording) -> list[Any]:
    return list(recording.profiler.profiler.kineto_results.events())


def _operator_seconds(recording: ProfilerRecording) -> dict[str, float]:
    """Return the seconds of each operator, without those of the operators that it calls.

    Operators in `WHOLE_OPERATORS` include all that they call. Times are the device's if any operator ran there,
    else the CPU's.
    """
    device: Counter[str] = Counter()
    host: Counter[str] = Counter()
    waiting = [event for event in recording.profiler.events() if event.cpu_parent is None]
    while waiting:
        event = waiting.pop()
        name = event.name
        if name in WHOLE_OPERATORS:
            device[name] += event.device_time_total
            host[name] += event.cpu_time_total
            continue
        if name.startswith("aten::"):
            device[name] += event.self_device_time_total
            host[name] += event.self_cpu_time_total
        waiting += event.cpu_children
    chosen = device if any(device.values()) else host
    return {name: micros / 1e6 for name, micros in chosen.most_common() if micros > 0}


def _product_dtype(kinds: list[str]) -> str:
    native = next((kind for kind in kinds if kind), "unknown")
    return _DTYPE_NAMES.get(native, native.removeprefix("c10::").casefold())


@contextlib.contextmanager
def _refuse_profilers(entries: tuple[tuple[type, str], ...]) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise RuntimeError(_REFUSAL)

    with contextlib.ExitStack() as stack:
        for owner, name in entries:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, refuse)
        yield


@contextlib.contextmanager
def _count_training(recording: ProfilerRecording) -> Iterator[None]:
    """Count backward passes and optimizer steps, and note autocast regions."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    autocast: Any = torch.amp.autocast_mode.autocast
    backward, enter = torch.autograd.backward, autocast.__enter__

    def count_backward(*args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
        recording.counts["backwards"] += 1
        backward(*args, **options)

    def note_autocast(self: Any) -> Any:  # noqa: ANN401 - PyTorch's
        if self._enabled:
            recording.autocast.add(str(self.fast_dtype).removeprefix("torch."))
        return enter(self)

    def count_step(*_: object) -> None:
        recording.counts["optimizer_steps"] += 1

    def time_closure(closure: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - the program's
            begin = time.perf_counter()
            try:
                return closure(*args, **options)
            finally:
                recording.closure_seconds += time.perf_counter() - begin

        return timed

    hooks = (
        register_optimizer_step_pre_hook(lambda _, args, options: replace_closure(args, options, time_closure)),
        register_optimizer_step_post_hook(count_step),
    )
    torch.autograd.backward, autocast.__enter__ = count_backward, note_autocast
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        torch.autograd.backward, autocast.__enter__ = backward, enter
