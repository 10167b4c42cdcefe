"""Task: the regions of the graphs that a program's step compiles, with the time of their kernels."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.program.compiled import cutting, recording
from warpsmith.program.compiled.cutting import Cut
from warpsmith.program.process import gather, profile_steps
from warpsmith.program.process.profile_steps import Steps

if TYPE_CHECKING:
    from warpsmith.program.compiled.recording import RecordedGraph
    from warpsmith.program.process.loaded_program import LoadedProgram

_WARM_UP_STEPS = 3
_GRAPH_PREFIX = re.compile(r"graph_\d+_")


def main(_program: LoadedProgram, *, steps: int) -> Steps[dict[str, Any]]:
    """Compile the step anew, trace `steps` steps, and list the regions of all graphs.

    Returns:
        `graphs`: number of compiled graphs. `kernel_seconds`: time of all generated kernels in the traced steps.
        `cuts`: for each region as it was cut, `region` or None, `refusal`, `operators`, `calls` and `seconds` in
        the traced steps, `kernels`, and whether it is in a backward pass.
    """
    with recording.record_graphs() as graphs:
        for _ in range(_WARM_UP_STEPS):
            yield
        profile_steps.synchronize_device()
        times = yield from _trace_kernels(steps)
    kernels = recording.kernels_by_graph(graphs)
    cuts = [
        (recorded, cut)
        for recorded, own in zip(graphs, kernels, strict=True)
        for cut in cutting.cut_regions(recorded.graph, own)
    ]
    shared = Counter(
        kernel.name for own in kernels for kernel in own
    )  # a trace does not tell kernels of one name apart
    return {
        "graphs": len(graphs),
        "kernel_seconds": sum(times[name][1] for name in shared if name in times),
        "cuts": [_describe_cut(recorded, cut, times, shared) for recorded, cut in cuts],
    }


def _trace_kernels(steps: int) -> Steps[dict[str, tuple[int, float]]]:
    """Return calls and seconds of each kernel by name."""
    from torch.profiler import ProfilerActivity, profile

    gpu = gather.gpu_initialized()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if gpu else [])]
    with profile(activities=activities, acc_events=True) as profiler:
        for _ in range(steps):
            yield
        profile_steps.synchronize_device()
    times: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events() or ():
        if gpu and event.device_type.name != "CUDA":
            continue  # the launch of a kernel has its name too
        times[_GRAPH_PREFIX.sub("", event.name)].append(event.time_range.elapsed_us() / 1e6)
    return {name: (len(seconds), sum(seconds)) for name, seconds in times.items()}


def _describe_cut(
    recorded: RecordedGraph, cut: Cut, times: dict[str, tuple[int, float]], holders: Mapping[str, int]
) -> dict[str, Any]:
    traced = {name: times.get(name, (0, 0.0)) for name in cut.kernels}
    names = dict.fromkeys(_operator_name(node) for node in cut.nodes)
    return {
        "region": cut.region.model_dump(mode="json") if cut.region else None,
        "refusal": cut.refusal,
        "operators": list(names),
        "calls": max((calls / holders[name] for name, (calls, _) in traced.items()), default=0.0),
        "seconds": sum(seconds / holders[name] * cut.kernels[name] for name, (_, seconds) in traced.items()),
        "kernels": sorted(cut.kernels),
        "backward": recorded.is_backward,
    }


def _operator_name(node: Any) -> str:  # noqa: ANN401 - a node of torch.fx
    name = str(getattr(node.target, "__name__", node.target))
    return name.partition(".")[0]
