"""A whole script under torch.profiler: run it, read its Chrome trace, tell where the time goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from warpsmith import files
from warpsmith.errors import MachineLacks, MissingInput, Misuse, SolutionFailed, TimedOut
from warpsmith.profiling.trace import analysis as trace_analysis
from warpsmith.profiling.trace import read as trace_read
from warpsmith.profiling.trace.models import Trace
from warpsmith.profiling.trace.text import text

__all__ = ["FILE", "read", "run", "text"]

FILE = "trace.json.gz"
"""Name of the Chrome trace in the folder that `run` is given."""

_STDERR = 2


def read(path: Path, *, skip_seconds: float = 0.0) -> Trace:
    """Analyse a Chrome trace that torch.profiler wrote, on any machine; one file is one rank.

    Raises:
        MissingInput: there is no such file, or nothing in it that PyTorch did.
        CorruptRecord: it is cut off or not JSON.
        Misuse: it is no Chrome trace, or `skip_seconds` leaves nothing.
    """
    return trace_analysis.analyse(trace_read.load(path), skip_seconds)


def run(
    script: Path,
    args: Sequence[str],
    out_folder: Path,
    *,
    steps: int | None = None,
    skip_seconds: float = 0.0,
    timeout: float,
) -> Trace:
    """Run a Python file as __main__ in a process of its own under torch.profiler; keep and analyse its trace.

    The script's output goes to stderr. With `steps` it is ended once it has done its first marked step and that
    many more; without, it runs to its end. `timeout` is in seconds. The folder holds `FILE` only afterwards.

    Raises:
        MissingInput: there is no such script, or it did nothing in PyTorch.
        Misuse: `out_folder` is a file, or `skip_seconds` leaves nothing of the trace, which is kept.
        MachineLacks: PyTorch is not installed.
        SolutionFailed: the script failed.
        TimedOut: it took more than `timeout`.
    """
    if not script.is_file():
        raise MissingInput(f"There is no script {script}; give a Python file.")
    if out_folder.exists() and not out_folder.is_dir():
        raise Misuse(f"{out_folder} is a file; give a folder for the trace.")
    if find_spec("torch") is None:
        raise MachineLacks(f"{sys.executable} has no PyTorch; install warpsmith[lab] where the script runs.")
    with tempfile.TemporaryDirectory(prefix="warpsmith-trace-") as folder:
        made, failure = Path(folder) / FILE, Path(folder) / "failure.json"
        code = _call([str(made), str(failure), str(steps or 0), str(script), *args], script, timeout)
        if code or not made.is_file():
            raise SolutionFailed(f"{script} failed with {_ended(code)}: {_last_words(failure)}")
        try:
            events = trace_read.load(made)
        except MissingInput as error:
            raise MissingInput(
                f"{script} ran to its end and did nothing in PyTorch; trace one that does."
            ) from error
        kept = out_folder / FILE
        files.write_file(kept, made.read_bytes())
    return trace_analysis.analyse(events._replace(source=str(kept)), skip_seconds)


def _call(arguments: Sequence[str], script: Path, timeout: float) -> int:
    """The exit status; -P keeps the working folder off the script's import path."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "warpsmith.profiling.trace.run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
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


def _ended(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _last_words(failure: Path) -> str:
    if not failure.is_file():
        return "it ended without a trace; see its output above."
    return str(json.loads(failure.read_text()))
