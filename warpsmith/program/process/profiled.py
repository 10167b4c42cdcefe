"""In the program's process: its steps under torch.profiler, for a trace or for what one step calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from warpsmith.profiling.trace.names import SCRIPT_KEY
from warpsmith.program.process import gather, recorder, values


def trace(step: Callable[[], object], steps: int, path: str, label: str) -> None:
    """Write a Chrome trace of one step to warm up and `steps` more, each in a range named `step`."""
    from torch.profiler import record_function

    synchronise()
    with recorder.recording(record_shapes=False) as found:
        found.profiler.add_metadata_json(SCRIPT_KEY, json.dumps(label))
        for _ in range(1 + steps):
            with record_function("step"):
                step()
        synchronise()
    found.profiler.export_chrome_trace(path)


def observe(step: Callable[[], object]) -> dict[str, Any]:
    """The fields of `core.program.Observed`, of one step; it runs three: the first may still set things up."""
    value = step()
    first, second = _recorded(step), _recorded(step)
    return {
        **recorder.observed(first),
        "shapes_vary": recorder.calls(first) != recorder.calls(second),
        "returns": bool(values.kept(value, whole=False)),
    }


def synchronise() -> None:
    """Wait for the device, where the program uses one."""
    import torch

    if gather.on_gpu():
        torch.cuda.synchronize()


def _recorded(step: Callable[[], object]) -> recorder.Recording:
    synchronise()
    with recorder.recording(record_shapes=True) as found:
        step()
        synchronise()
    return found
