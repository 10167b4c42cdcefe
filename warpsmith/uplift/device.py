"""Device calls: run the requests that agents left in their folders, one after the other, within their budgets."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from warpsmith import files, project
from warpsmith.errors import MissingInput
from warpsmith.passed_environment import tool_environment
from warpsmith.temporary import TemporaryFolder
from warpsmith.uplift import submission
from warpsmith.uplift.models import Cell, DeviceCall
from warpsmith.user_state import user_state_folder

REQUEST, READY, CALLS = "device/request.sh", "device/ready", "device/calls.jsonl"
"""Paths in a cell's folder: the request, the sign that it is complete, and the log of calls."""

KILLED = 124
"""Exit status of a request that was killed at its limit, as `timeout` gives it."""

_OUTPUT_CHARACTERS = 24_000


def pending_cells(folders: list[Path]) -> list[Path]:
    """List the folders whose agents wait for the device."""
    return [folder for folder in folders if (folder / READY).exists()]


def run_request(folder: Path) -> DeviceCall | None:
    """Run the request of a cell and write its result; None if the budget of calls is spent, which the result says.

    Raises:
        MissingInput: the folder is no cell, or there is no request.
    """
    cell = submission.read_cell(folder)
    request = folder / REQUEST
    if not request.is_file():
        raise MissingInput(f"{request} does not exist; write what is to run on the device.")
    calls = read_calls(folder)
    number = len(calls) + 1
    result = folder / "device" / f"result-{number}.txt"
    if number > cell.budget.calls:
        files.write_file(result, f"refused: all {cell.budget.calls} device calls are used\n")
        (folder / READY).unlink(missing_ok=True)
        return None
    call, output = _run(folder, cell)
    _write_calls(folder, (*calls, call))
    left = cell.budget.calls - number
    files.write_file(
        result, f"{output}\n[exit status {call.status} after {call.seconds:.1f} s; {left} device calls left]\n"
    )
    (folder / READY).unlink(missing_ok=True)
    return call


def read_calls(folder: Path) -> list[DeviceCall]:
    """Read the log of a cell's device calls, by the copy in the user's folder if the cell's own lost entries."""
    return max((_read_log(log) for log in (folder / CALLS, _kept_log(folder))), key=len)


def forget_calls(folder: Path) -> None:
    """Forget the calls of an earlier cell in the same place."""
    _kept_log(folder).unlink(missing_ok=True)


def _write_calls(folder: Path, calls: Sequence[DeviceCall]) -> None:
    """Write the log into the cell and, if possible, where its agent does not look."""
    lines = "".join(f"{each.model_dump_json()}\n" for each in calls)
    files.write_file(folder / CALLS, lines)
    with suppress(OSError):
        files.write_file(_kept_log(folder), lines)


def _read_log(log: Path) -> list[DeviceCall]:
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    return [DeviceCall.model_validate_json(line) for line in lines]


def _kept_log(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return user_state_folder() / "uplift" / f"{name}.jsonl"


def _run(folder: Path, cell: Cell) -> tuple[DeviceCall, str]:
    started = time.monotonic()
    with TemporaryFolder("uplift") as scratch, tempfile.TemporaryFile() as stream:
        process = subprocess.Popen(
            ["bash", REQUEST],
            cwd=folder,
            env=_environment(folder, cell, Path(scratch)),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that everything that it started ends with it
        )
        try:
            status = process.wait(cell.budget.call_seconds)
        except subprocess.TimeoutExpired:
            status = KILLED
        finally:
            _end_group(process)
        seconds = time.monotonic() - started
        stream.seek(0)
        output = stream.read().decode(errors="replace")
    return DeviceCall(seconds=round(seconds, 2), status=status), _shorten(output)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a request's process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(folder: Path, cell: Cell, scratch: Path) -> dict[str, str]:
    """Return variables that make `python3` this interpreter, and `warpsmith` a command in the plugin's arms."""
    python = scratch / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(stat.S_IRWXU)
    variables = {**tool_environment(), "PYTHONUNBUFFERED": "1", "WARPSMITH_PYTHON": sys.executable}
    paths = [str(scratch), os.environ.get("PATH", "")]
    if cell.arm.startswith("plugin"):
        paths.insert(0, str(folder.resolve() / "bin"))
        package = Path(project.__file__).parents[1]
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
    return {**variables, "PATH": os.pathsep.join(paths)}


def _shorten(output: str) -> str:
    """Return the beginning and the end of a long output."""
    half = _OUTPUT_CHARACTERS // 2
    if len(output) <= 2 * half:
        return output
    return f"{output[:half]}\n[{len(output) - 2 * half} characters are left out]\n{output[-half:]}"
