"""Guard of one shell command: when the command or the caller ends, every process that it left is killed.

The guard is a program of its own, because the caller may die at any time; a pipe on stdin shows that it is alive.
The guard is also a subreaper, which orphans become children of, so a double fork does not escape it.
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
_MOST_PROCESSES = 10_000


def main(command: str, status: int) -> int:
    """Run `command`, write the number of processes that it left to `status`, and return its exit code."""
    process.prctl(_SUBREAPER, 1)
    shell = subprocess.Popen(("/bin/sh", "-c", command), stdin=subprocess.DEVNULL, start_new_session=True)
    ended = os.pidfd_open(shell.pid)
    select.select([sys.stdin.fileno(), ended], [], [])
    finished = select.select([ended], [], [], 0)[0] != []
    code = shell.wait() if finished else 0
    left = _kill_all()
    os.write(status, f"{left}\n".encode())
    return code if code >= 0 else 128 - code


def _kill_all() -> int:
    """Kill every descendant of this process; return how many there were."""
    killed: set[int] = set()
    while descendants := process.list_descendants([os.getpid()], _MOST_PROCESSES):
        killed.update(descendants)
        for pid in descendants:
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
