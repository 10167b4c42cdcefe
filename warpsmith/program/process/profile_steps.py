"""In the program's process: steps under torch.profiler, for a trace or for the operators of one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from warpsmith.profiling.trace.names import SCRIPT_KEY
from warpsmith.program.process import gather, profiler_recording, values


def write_trace(step: Callable[[], object], steps: int, path: str, label: str) -> None:
    """Write a Chrome trace of one warm-up step and `steps` more, each in a range named `step`."""
    from torch.profiler import record_function

    synchronize_device()
    with profiler_recording.record_profiler(record_shapes=False) as recording:
        recording.profiler.add_metadata_json(SCRIPT_KEY, json.dumps(label))
        for _ in range(1 + steps):
            with record_function("step"):
                step()
        synchronize_device()
    recording.profiler.export_chrome_trace(path)


def observe_step(step: Callable[[], object]) -> dict[str, Any]:
    """Run three steps, the first to set things up, and return the fields of `ObservedStep` for the second."""
    value = step()
    first, second = _record_step(step), _record_step(step)
    return {
        **profiler_recording.summarize_step(first),
        "shapes_vary": profiler_recording.count_operator_calls(first)
        != profiler_recording.count_operator_calls(second),
        "returns": bool(values.copy_leaves(value, whole=False)),
    }


def synchronize_device() -> None:
    """Wait for the device if the program uses one."""
    import torch

    if gather.gpu_initialized():
        torch.cuda.synchronize()


def _record_step(step: Callable[[], object]) -> profiler_recording.ProfilerRecording:
    synchronize_device()
    with profiler_recording.record_profiler(record_shapes=True) as recording:
        step()
        synchronize_device()
    return recording
