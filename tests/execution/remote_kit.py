"""Helpers of the tests over a real sshd: waiting, a job's folders, and a network that drops."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sshd import Server

from warpsmith.execution import station
from warpsmith.execution.bundle import Bundle
from warpsmith.execution.contexts import NamedContext

Changed = Callable[..., NamedContext]
Start = Callable[[NamedContext, Bundle, str], "subprocess.Popen[bytes]"]

_SECONDS = 20.0


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def jobs(entry: NamedContext) -> list[Path]:
    return sorted((Path(entry.context.workdir) / station.OWN / "jobs").glob("[!.]*"))


def end_connections(server: Server) -> None:
    """Kill what serves this test's connections, as a dropped network does."""
    sockets = os.environ["XDG_RUNTIME_DIR"].encode()
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = stat.read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if line.startswith((b"ssh ", b"ssh:")) and (str(server.config).encode() in line or sockets in line):
            os.kill(int(stat.parent.name), signal.SIGKILL)
