"""In the program's process: PyTorch's profiler, and what it saw in figures.

Nothing here but PyTorch and Python, as in `gather`: a program run by a shell command loads this file by its path.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

CallKey = tuple[str, str, tuple[str, ...]]
"""Name, shapes and dtypes of a call."""

WHOLE_OPERATORS = ("aten::rms_norm", "aten::scaled_dot_product_attention", "aten::stack", "aten::embedding")
"""Operators that call others and are worth a kernel as a whole; `extract` does not find what they call."""

_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution")
_DTYPE_NAMES = {"float": "float32", "double": "float64", "c10::BFloat16": "bfloat16", "c10::Half": "float16"}
_LOADER_EVENT, _OPTIMIZER_EVENT = "enumerate(DataLoader)", "Optimizer.step"
_ALLOCATIONS = ("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cuMemCreate", "cuMemUnmap")
_REFUSAL = "the program starts torch.profiler itself: switch that off"


class ProfilerRecording:
    """A profiler that ran, and what was counted beside it; whole when `recording` ends."""

    def __init__(self, profiler: Any) -> None:  # noqa: ANN401 - PyTorch's
        self.profiler = profiler
        """PyTorch's."""
        self.counts: Counter[str] = Counter()
        """Calls of backward and steps of optimizers."""
        self.autocast: set[str] = set()
        """Dtypes of autocast regions."""
        self.seconds = 0.0
        """How long it ran."""


@contextlib.contextmanager
def record_profile(*, record_shapes: bool) -> Iterator[ProfilerRecording]:
    """Record until the block ends. PyTorch crashes where a profiler starts within another: that is refused."""
    import torch
    from torch.profiler import ProfilerActivity, profile, supported_activities

    wanted = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & set(supported_activities())  # type: ignore[no-untyped-call]
    profiler = profile(activities=wanted, record_shapes=record_shapes, acc_events=True)
    found = ProfilerRecording(profiler)
    profiler.start()
    begin = time.perf_counter()
    places: tuple[tuple[type, str], ...] = (
        (torch.profiler.profile, "start"),
        (torch.autograd.profiler.profile, "__enter__"),
    )
    try:
        with _refuse_profilers(places), _count_training(found):
            yield found
    finally:
        found.seconds = time.perf_counter() - begin
        profiler.stop()  # PyTorch crashes at exit where it still runs


def summarize_step(found: ProfilerRecording) -> dict[str, Any]:
    """The fields of `core.program.Observed`, of all that was recorded."""
    events = _profiler_events(found)
    names: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    spent: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        name = str(event.name())
        names[name] += 1
        if name in _PRODUCTS:
            dtypes[_product_dtype(event.dtypes())] += 1
        place = next(
            (each for each in (_LOADER_EVENT, _OPTIMIZER_EVENT, *_ALLOCATIONS) if name.startswith(each)), ""
        )
        spent["allocations" if place in _ALLOCATIONS else place].append(event.duration_ns())
    operators = {name: count for name, count in names.most_common() if name.startswith("aten::")}
    return {
        "seconds": found.seconds,
        "operators": operators,
        "times": _operator_seconds(found),
        "products": dict(dtypes.most_common()),
        "backwards": found.counts["backwards"],
        "optimizer_steps": found.counts["optimizer_steps"],
        "graph_launches": sum(count for name, count in names.items() if "GraphLaunch" in name),
        "loader_seconds": _median_total(spent[_LOADER_EVENT]),
        "optimizer_seconds": _median_total(spent[_OPTIMIZER_EVENT]),
        "allocation_seconds": sum(spent["allocations"]) / 1e9,
        "autocast": sorted(found.autocast),
        "shapes_vary": False,
    }


def count_operator_calls(found: ProfilerRecording) -> Counter[CallKey]:
    """Operators with their shapes and dtypes and how often; without those that make a batch."""
    events = _profiler_events(found)
    loads = sorted(
        (event.start_ns(), event.start_ns() + event.duration_ns())
        for event in events
        if event.name().startswith(_LOADER_EVENT)
    )
    begins = [begin for begin, _ in loads]

    def loading(at: int) -> bool:
        place = bisect_right(begins, at) - 1
        return place >= 0 and at < loads[place][1]

    return Counter(
        (event.name(), str(event.shapes()), tuple(event.dtypes()))
        for event in events
        if event.name().startswith("aten::") and not loading(event.start_ns())
    )


def _median_total(nanoseconds: list[int]) -> float:
    """Seconds of all of them if each took the median: the first of a run sets things up."""
    return statistics.median(nanoseconds) * len(nanoseconds) / 1e9 if nanoseconds else 0.0


def _profiler_events(found: ProfilerRecording) -> list[Any]:
    return list(found.profiler.profiler.kineto_results.events())


def _operator_seconds(found: ProfilerRecording) -> dict[str, float]:
    """Each operator's own seconds, of `WHOLE` with all that they call: on the device where any has work there,
    else on the CPU."""
    device: Counter[str] = Counter()
    host: Counter[str] = Counter()
    left = [event for event in found.profiler.events() if event.cpu_parent is None]
    while left:
        event = left.pop()
        name = event.name
        if name in WHOLE_OPERATORS:
            device[name] += event.device_time_total
            host[name] += event.cpu_time_total
            continue
        if name.startswith("aten::"):
            device[name] += event.self_device_time_total
            host[name] += event.self_cpu_time_total
        left += event.cpu_children
    chosen = device if any(device.values()) else host
    return {name: micros / 1e6 for name, micros in chosen.most_common() if micros > 0}


def _product_dtype(kinds: list[str]) -> str:
    native = next((kind for kind in kinds if kind), "unknown")
    return _DTYPE_NAMES.get(native, native.removeprefix("c10::").casefold())


@contextlib.contextmanager
def _refuse_profilers(places: tuple[tuple[type, str], ...]) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise RuntimeError(_REFUSAL)

    with contextlib.ExitStack() as stack:
        for place, name in places:
            stack.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, refuse)
        yield


@contextlib.contextmanager
def _count_training(found: ProfilerRecording) -> Iterator[None]:
    """Count backward passes and optimizer steps, and note autocast regions."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    autocast: Any = torch.amp.autocast_mode.autocast
    backward, enter = torch.autograd.backward, autocast.__enter__

    def counting(*args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
        found.counts["backwards"] += 1
        backward(*args, **options)

    def noting(self: Any) -> Any:  # noqa: ANN401 - PyTorch's
        if self._enabled:
            found.autocast.add(str(self.fast_dtype).removeprefix("torch."))
        return enter(self)

    def stepped(*_: object) -> None:
        found.counts["optimizer_steps"] += 1

    hook = register_optimizer_step_post_hook(stepped)
    torch.autograd.backward, autocast.__enter__ = counting, noting
    try:
        yield
    finally:
        hook.remove()
        torch.autograd.backward, autocast.__enter__ = backward, enter
