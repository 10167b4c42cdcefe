"""The process that workers are forked from: torch is imported once, and nothing of a worker outlives it.

It is a subreaper: what a worker double-forks comes back to it and is killed with the worker. It and its
workers die with the grader.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path

from warpsmith.lab.channel import Channel, Closed

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LARGEST_FILE = 1 << 30
_GRACE_SECONDS = 0.1


def main() -> None:
    """Serve the grader on the socket whose number is the first argument; preload the other arguments."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for name in sys.argv[2:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    channel.send({"ready": True})
    alive: set[int] = set()
    with contextlib.suppress(Closed):
        while True:
            message, files = channel.receive(files=2)
            if "spawn" in message:
                alive.add(pid := _spawn(channel, files, Path(message["spawn"])))
                channel.send({"pid": pid})
            else:
                alive.discard(message["reap"])
                channel.send({"status": _reap(message["reap"], alive)})
    for pid in alive:
        _reap(pid, set())


def _spawn(channel: Channel, files: list[int], scratch: Path) -> int:
    """Fork a worker that talks over the first file and writes its output to the second."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        channel.close()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
        os.dup2(files[1], 1)
        os.dup2(files[1], 2)
        os.chdir(scratch)
        from warpsmith.lab import worker

        worker.serve(Channel(socket.socket(fileno=files[0])))
    except BaseException as error:
        os.write(2, f"worker: {error!r}\n".encode())
    finally:
        os._exit(0)


def _reap(pid: int, alive: set[int]) -> int:
    """Kill a worker, its process group and whatever it left behind; return its wait status."""
    status = _ended(pid)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    if status is None:
        status = os.waitpid(pid, 0)[1]
    while orphans := [child for child in _children() if child not in alive]:
        for orphan in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)
    return status


def _ended(pid: int) -> int | None:
    """The wait status of a worker that ends by itself within a moment: its channel closes before it is gone."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    return None


def _children() -> list[int]:
    me = os.getpid()
    return [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    main()
