"""A whole script under torch.profiler: run it, read its Chrome trace, and compute where the time goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.errors import MissingInput, Misuse, SolutionFailed, TimedOut
from warpsmith.packages import require_torch
from warpsmith.profiling.trace import analysis as trace_analysis
from warpsmith.profiling.trace import read as trace_read
from warpsmith.profiling.trace.models import Trace
from warpsmith.temporary import TemporaryFolder

FILE = "trace.json.gz"
"""File name of the Chrome trace in the folder that `trace_script` is given."""

_STDERR_FD = 2


def rank_file(rank: int) -> str:
    """Return the file name of the Chrome trace of a rank; that of the first is `FILE`."""
    return f"trace.rank{rank}.json.gz" if rank else FILE


def analyze_trace_file(path: Path, *, skip_seconds: float = 0.0) -> Trace:
    """Analyze a Chrome trace by torch.profiler, on any machine; one file is one rank.

    Raises:
        MissingInput: there is no such file, or it contains no work by PyTorch.
        CorruptRecord: it is truncated or not JSON.
        Misuse: it is not a Chrome trace, or `skip_seconds` leaves nothing.
    """
    return trace_analysis.analyze_trace(trace_read.load_trace(path), skip_seconds)


def trace_script(
    script: Path,
    args: Sequence[str],
    out_folder: Path,
    *,
    steps: int | None = None,
    skip_seconds: float = 0.0,
    timeout: float,
) -> Trace:
    """Run a Python file as __main__ in its own process under torch.profiler; save and analyze its trace.

    The script's output goes to stderr. With `steps` the script is ended after its first marked step and that many
    more; without, it runs to its end. `timeout` is in seconds. The folder contains `FILE` only after success.

    Raises:
        MissingInput: there is no such script, or it did nothing in PyTorch.
        Misuse: `out_folder` is a file, or `skip_seconds` leaves nothing of the trace, which is saved.
        MachineLacks: PyTorch is not installed.
        SolutionFailed: the script failed.
        TimedOut: it took more than `timeout`.
    """
    if not script.is_file():
        raise MissingInput(f"There is no script {script}; give a Python file.")
    if out_folder.exists() and not out_folder.is_dir():
        raise Misuse(f"{out_folder} is a file; give a folder for the trace.")
    require_torch("The script")
    with TemporaryFolder("trace") as folder:
        trace_path, failure = Path(folder) / FILE, Path(folder) / "failure.json"
        code = _call([str(trace_path), str(failure), str(steps or 0), str(script), *args], script, timeout)
        if code or not trace_path.is_file():
            raise SolutionFailed(f"{script} failed with {_exit_text(code)}: {_last_message(failure)}")
        try:
            events = trace_read.load_trace(trace_path)
        except MissingInput as error:
            raise MissingInput(
                f"{script} ran to its end and did nothing in PyTorch; trace a script that does."
            ) from error
        saved = out_folder / FILE
        files.write_file(saved, trace_path.read_bytes())
    return trace_analysis.analyze_trace(events._replace(source=str(saved)), skip_seconds)


def _call(arguments: Sequence[str], script: Path, timeout: float) -> int:
    """Run the script in a process and return its exit status; -P keeps the working folder off its import path."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "warpsmith.profiling.trace.run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR_FD,
        start_new_session=True,
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise TimedOut(
            f"{script} took more than {timeout:g} s; raise the limit, or end it after some marked steps."
        ) from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _exit_text(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _last_message(failure: Path) -> str:
    if not failure.is_file():
        return "it ended without a trace; see its output above."
    return str(json.loads(failure.read_text()))
