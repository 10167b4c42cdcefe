"""Process that runs a script under torch.profiler: `python -m warpsmith.profiling.trace.run`.

Arguments: path of the trace to write, path for the message of a script that fails, number of marked steps to run
after the first (0: all), the script, the script's arguments.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from warpsmith.profiling.trace.names import SCRIPT_KEY, STEP


class StepsDone(BaseException):
    """Ends a script after the requested number of steps; not
    an Exception, so that the script does not catch it."""


def main() -> None:
    """Run the script and write its trace; the exit status is the script's own."""
    trace, failure, steps, script, *args = sys.argv[1:]
    from torch.profiler import ProfilerActivity, profile, supported_activities

    _mark_nvtx()
    if int(steps):
        _end_after(1 + int(steps))
    activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & set(supported_activities())  # type: ignore[no-untyped-call]
    profiler = profile(activities=activities, acc_events=True)
    sys.argv[:] = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    profiler.start()
    profiler.add_metadata_json(SCRIPT_KEY, json.dumps(" ".join([script, *args])))
    _refuse_second_profiler()
    try:
        _run(script)
    except BaseException as error:
        Path(failure).write_text(json.dumps(_error_text(error)))
        raise
    finally:
        profiler.stop()  # PyTorch crashes at exit if it still runs
    profiler.export_chrome_trace(trace)


def _run(script: str) -> None:
    try:
        runpy.run_path(script, run_name="__main__")
    except StepsDone:
        pass
    except SystemExit as ending:
        if ending.code not in (None, 0):
            raise


def _error_text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return str(error.code) if isinstance(error.code, str) else "it called sys.exit."
    return traceback.format_exception_only(error)[-1].strip()


def _refuse_second_profiler() -> None:
    """Make a second profiler in the script raise an error, because PyTorch would crash."""
    import torch

    def refuse(*_: object) -> None:
        raise RuntimeError("the script starts torch.profiler itself: switch that off, or read the trace it writes")

    torch.profiler.profile.start = refuse  # type: ignore[method-assign, assignment]
    torch.autograd.profiler.profile.__enter__ = refuse  # type: ignore[method-assign]


def _mark_nvtx() -> None:
    """Record NVTX ranges as ranges of the trace, which does not contain them by itself."""
    import torch
    from torch.profiler import record_function

    nvtx: Any = torch.cuda.nvtx
    push, pop, thread = nvtx.range_push, nvtx.range_pop, threading.local()

    def range_push(msg: str) -> Any:  # noqa: ANN401 - PyTorch's
        depth = push(msg)
        thread.open = [*getattr(thread, "open", ()), ExitStack()]
        thread.open[-1].enter_context(record_function(msg))
        return depth

    def range_pop() -> Any:  # noqa: ANN401 - PyTorch's
        depth = pop()
        if getattr(thread, "open", None):
            thread.open.pop().close()
        return depth

    nvtx.range_push, nvtx.range_pop = range_push, range_pop


def _end_after(steps: int) -> None:
    """End the script after `steps` ranges that mark steps."""
    from torch.profiler import record_function

    leave = record_function.__exit__
    finished = 0

    def __exit__(self: record_function, *error: Any) -> None:  # noqa: ANN401, N807
        nonlocal finished
        leave(self, *error)
        if error[0] is None and STEP.fullmatch(self.name):
            finished += 1
            if finished >= steps:
                raise StepsDone

    record_function.__exit__ = __exit__  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
