"""In the program's process: steps under torch.profiler, for a trace or for the operators of one step.

A generator here yields where one step is to run, and gets its value: whoever drives it calls the step, or lets the
script go on to the end of its next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from warpsmith.profiling.trace.names import SCRIPT_KEY
from warpsmith.program.process import gather, profiler_recording, values

Answer = TypeVar("Answer")
Steps = Generator[None, object, Answer]
"""Work that yields for each step, and returns an answer."""


def run_steps(work: Steps[Answer], step: Callable[[], object]) -> Answer:
    """Do the work with a callable step, and return its answer."""
    try:
        next(work)
        while True:
            work.send(step())
    except StopIteration as end:
        answer: Answer = end.value
        return answer


def write_trace(steps: int, path: str, label: str) -> Steps[None]:
    """Write a Chrome trace of one warm-up step and `steps` more, each in a range named `step`.

    With several ranks, shapes are recorded: Gloo's collectives have their sizes from them.
    """
    from torch.profiler import record_function

    synchronize_device()
    with profiler_recording.record_profiler(record_shapes=gather.world_size() > 1) as recording:
        recording.profiler.add_metadata_json(SCRIPT_KEY, json.dumps(label))
        for _ in range(1 + steps):
            with record_function("step"):
                yield
        synchronize_device()
    recording.profiler.export_chrome_trace(path)


def observe_step() -> Steps[dict[str, Any]]:
    """Run three steps, the first to set things up, and return the fields of `ObservedStep` for the second."""
    value = yield
    first = yield from _record_step()
    second = yield from _record_step()
    return {
        **profiler_recording.summarize_step(first),
        "shapes_vary": profiler_recording.count_operator_calls(first)
        != profiler_recording.count_operator_calls(second),
        "returns": bool(values.copy_leaves(value, whole=False)),
    }


def synchronize_device() -> None:
    """Wait for the GPUs that the program uses; the one of a rank need not be the current one."""
    import torch

    for gpu in gather.list_own_gpus():
        torch.cuda.synchronize(gpu)


def _record_step() -> Steps[profiler_recording.ProfilerRecording]:
    synchronize_device()
    with profiler_recording.record_profiler(record_shapes=True) as recording:
        yield
        synchronize_device()
    return recording
