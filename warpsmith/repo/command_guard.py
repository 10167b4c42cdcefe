"""Runs one shell command, and outlives neither it nor whoever asked: what is left below it is killed.

A program of its own, since whoever asks may die at any time: a pipe on stdin says that it lives. Orphans come to
the nearest subreaper, so not even a double fork escapes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

from warpsmith.lab.workers import process

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_MOST = 10_000


def main(command: str, status: int) -> int:
    """Run `command` in the working folder; returns its exit code, and writes what it left to `status`."""
    process.prctl(_SUBREAPER, 1)
    shell = subprocess.Popen(("/bin/sh", "-c", command), stdin=subprocess.DEVNULL, start_new_session=True)
    ended = os.pidfd_open(shell.pid)
    select.select([sys.stdin.fileno(), ended], [], [])
    done = select.select([ended], [], [], 0)[0] != []
    code = shell.wait() if done else 0
    left = _kill_all()
    os.write(status, f"{left}\n".encode())
    return code if code >= 0 else 128 - code


def _kill_all() -> int:
    """Kill every process below this one; returns how many there were."""
    killed: set[int] = set()
    while found := process.list_descendants([os.getpid()], _MOST):
        killed.update(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
    return len(killed)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
