"""Process that workers are forked from: it imports torch once, and nothing that a worker started outlives it.

It is a subreaper: processes that a worker double-forks are reparented to it and are killed with the worker. When
the grader ends for any reason, this process kills all workers and then ends. If it is killed, its workers die with
it.
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

from warpsmith.core import gate_rules
from warpsmith.lab.sandbox import walls
from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_GRACE_SECONDS = 0.1

WITNESS = b"warpsmith"
"""Bytes that the grader reads from a new worker, to find out whether it can read its memory."""
_witness = ctypes.create_string_buffer(WITNESS)


def main() -> None:
    """Preload the modules in arguments 2 and up, then serve the grader on the socket with file number argument
    1."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    process.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        for name in sys.argv[2:]:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        _prepare_workers()
        with contextlib.suppress(ChannelClosed):
            channel.send({"ready": True})
            _serve(channel)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _kill_all()


def _prepare_workers() -> None:
    from warpsmith.lab.workers import worker

    worker.prepare_workers()


def _serve(channel: Channel) -> None:
    """Fork and reap workers as the grader asks, until it closes the channel."""
    alive: set[int] = set()
    while True:
        message, files = channel.receive(files=2)
        if "spawn" in message:
            alive.add(pid := _spawn(channel, files, message))
            channel.send({"pid": pid})
        else:
            alive.discard(message["reap"])
            channel.send({"status": _reap(message["reap"], alive)})


def _spawn(channel: Channel, files: list[int], message: Message) -> int:
    """Fork a worker that uses the first file as its channel and writes its output to the second."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        for file in files:
            os.close(file)
        return pid
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        channel.close()
        os.dup2(files[1], 1)
        os.dup2(files[1], 2)
        worker_channel = Channel(socket.socket(fileno=files[0]))
        worker_channel.send(_confine(message))
        process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        from warpsmith.lab.workers import worker

        worker.serve_grader(worker_channel)
    except BaseException as error:
        os.write(2, f"worker: {error!r}\n".encode())
    finally:
        os._exit(0)


def _confine(message: Message) -> Message:
    """Put the worker into the sandbox, unless it is trusted; return its report from before it loads anything."""
    scratch = Path(message["spawn"])
    if message["trusted"]:
        os.chdir(scratch)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (gate_rules.LARGEST_FILE_BYTES, gate_rules.LARGEST_FILE_BYTES))
        checks = []
    else:
        checks = [
            check.model_dump()
            for check in walls.enter_sandbox(scratch, [Path(path) for path in message["hidden"]])
        ]
    return {"isolation": checks, "witness": ctypes.addressof(_witness)}


def _reap(pid: int, alive: set[int]) -> int:
    """Kill a worker, its process group and everything it left behind; return its wait status.

    What is in the group of a living worker stays: that worker left it, and is still to be asked about it.
    """
    status = _exit_status(pid)
    process.signal_all(pid, [pid], signal.SIGKILL)
    if status is None:
        status = os.waitpid(pid, 0)[1]
    while orphans := [child for child in process.list_children(os.getpid()) if not _is_of(child, alive)]:
        _kill(orphans)
    return status


def _is_of(pid: int, workers: set[int]) -> bool:
    """Return True for a worker, and for a process in the group of one."""
    stat = process.read_stat(str(pid))
    return pid in workers or (stat is not None and stat.group in workers)


def _kill_all() -> None:
    while pids := process.list_children(os.getpid()):
        _kill(pids)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        process.signal_all(pid, [pid], signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _exit_status(pid: int) -> int | None:
    """Return the wait status of a worker that ends by itself within a moment, since its channel closes before it
    exits.

    Returns None if it does not end or is stopped.
    """
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        pid_done, status = os.waitpid(pid, os.WNOHANG)
        if pid_done:
            return status
        if (stat := process.read_stat(str(pid))) and stat.state in process.STOPPED_STATES:
            return None
        time.sleep(0.002)
    return None


if __name__ == "__main__":
    main()
