"""The process that runs a script under torch.profiler: `python -m warpsmith.profiling.trace.run`.

Arguments: the trace to write, where to leave the last words of a script that fails, how many marked steps to do
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


class Enough(BaseException):
    """The script has done as many steps as were asked for; not an Exception, so that the script lets it pass."""


def main() -> None:
    """Run the script, write its trace; the exit status is the script's own."""
    trace, failure, steps, script, *args = sys.argv[1:]
    from torch.profiler import ProfilerActivity, profile, supported_activities

    _mark_nvtx()
    if int(steps):
        _end_after(1 + int(steps))
    wanted = {ProfilerActivity.CPU, ProfilerActivity.CUDA} & set(supported_activities())  # type: ignore[no-untyped-call]
    profiler = profile(activities=wanted, acc_events=True)
    sys.argv[:] = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    profiler.start()
    profiler.add_metadata_json(SCRIPT_KEY, json.dumps(" ".join([script, *args])))
    _refuse_another()
    try:
        _run(script)
    except BaseException as error:
        Path(failure).write_text(json.dumps(_words(error)))
        raise
    finally:
        profiler.stop()  # PyTorch crashes at exit where it still runs
    profiler.export_chrome_trace(trace)


def _run(script: str) -> None:
    try:
        runpy.run_path(script, run_name="__main__")
    except Enough:
        pass
    except SystemExit as ending:
        if ending.code not in (None, 0):
            raise


def _words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return str(error.code) if isinstance(error.code, str) else "it called sys.exit."
    return traceback.format_exception_only(error)[-1].strip()


def _refuse_another() -> None:
    """PyTorch crashes where a profiler starts within another: the script's own fails with words instead."""
    import torch

    def refuse(*_: object) -> None:
        raise RuntimeError("the script starts torch.profiler itself: switch that off, or read the trace it writes")

    torch.profiler.profile.start = refuse  # type: ignore[method-assign, assignment]
    torch.autograd.profiler.profile.__enter__ = refuse  # type: ignore[method-assign]


def _mark_nvtx() -> None:
    """NVTX ranges become ranges of the trace, which does not hold them by itself."""
    import torch
    from torch.profiler import record_function

    nvtx: Any = torch.cuda.nvtx
    push, pop, here = nvtx.range_push, nvtx.range_pop, threading.local()

    def range_push(msg: str) -> Any:  # noqa: ANN401 - PyTorch's
        depth = push(msg)
        here.open = [*getattr(here, "open", ()), ExitStack()]
        here.open[-1].enter_context(record_function(msg))
        return depth

    def range_pop() -> Any:  # noqa: ANN401 - PyTorch's
        depth = pop()
        if getattr(here, "open", None):
            here.open.pop().close()
        return depth

    nvtx.range_push, nvtx.range_pop = range_push, range_pop


def _end_after(steps: int) -> None:
    """End the script when that many ranges that mark steps have ended."""
    from torch.profiler import record_function

    leave = record_function.__exit__
    done = 0

    def __exit__(self: record_function, *error: Any) -> None:  # noqa: ANN401, N807
        nonlocal done
        leave(self, *error)
        if error[0] is None and STEP.fullmatch(self.name):
            done += 1
            if done >= steps:
                raise Enough

    record_function.__exit__ = __exit__  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
