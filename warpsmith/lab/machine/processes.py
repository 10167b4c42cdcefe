"""Processes of ours that run at once: each in a session of its own, all ended with this process or by Ctrl-C."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from warpsmith import errors, files
from warpsmith.errors import AgentStopped, WarpsmithError
from warpsmith.termination import INTERRUPTED, interrupt_on_signals

if TYPE_CHECKING:
    from warpsmith.core.text import Tell

PATIENCE = 15.0
"""Seconds that interrupted processes may take: a designer's session reports its cost meanwhile."""

ERROR = "error.json"
"""File in a process's folder with the error that ended it."""

_LOG = "log"
_PR_SET_PDEATHSIG = 1


class Processes:
    """Processes that run at once; leaving the block early interrupts those that still run."""

    def __init__(self, tell: Tell) -> None:
        """Take a callback for the lines that they print."""
        self._tell = tell
        self._running: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()

    def start(self, title: str, module: str, folder: Path) -> None:
        """Start `python -m module FOLDER` in the folder; its output is told line by line after the title."""
        (folder / ERROR).unlink(missing_ok=True)
        with (folder / _LOG).open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(folder), str(os.getpid())],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        reader = threading.Thread(target=self._read, args=(title, process.stdout), daemon=True)
        reader.start()
        self._running.append(process)
        self._readers.append(reader)

    def is_running(self) -> bool:
        """Return True while one of them has not ended."""
        return any(process.poll() is None for process in self._running)

    def wait(self) -> None:
        """Wait until all have ended, and their lines are told."""
        for process in self._running:
            process.wait()
        for reader in self._readers:
            reader.join()
        self._running, self._readers = [], []

    def _read(self, title: str, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._tell(f"{title}  {line.rstrip()}")

    def _end_all(self) -> None:
        alive = [process for process in self._running if process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE
        try:
            for process in alive:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
        finally:  # a second Ctrl-C ends the patience
            for process in alive:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def run_in_folder(work: Callable[[Path, Tell], None]) -> None:
    """Run `work` in the folder that the command line names; killed when the process dies that started it.

    Progress goes to stdout. An error of the lab is written to the folder and ends the process.
    """
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has died already
        os._exit(1)

    interrupt_on_signals()  # Slurm and systemd signal all processes of a group

    def tell(line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    try:
        work(folder, tell)
    except WarpsmithError as error:
        content = {"kind": type(error).__name__, "message": str(error)}
        files.write_file(folder / ERROR, json.dumps(content) + "\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def read_error(folder: Path) -> WarpsmithError:
    """Return the error because of which the process in a folder left no result; else AgentStopped with its log."""
    with suppress(OSError, ValueError):
        content = json.loads((folder / ERROR).read_text())
        kind = getattr(errors, content["kind"], AgentStopped)
        return kind(content["message"]) if issubclass(kind, WarpsmithError) else AgentStopped(content["message"])
    with suppress(OSError):
        if lines := (folder / _LOG).read_text(errors="replace").strip().splitlines():
            return AgentStopped(f"its process ended: {lines[-1]}")
    return AgentStopped("its process was ended")
