"""Forks the commands of a test from a process that has imported PyTorch: each would import it anew, for seconds.

`ForkHost.python` is a program that stands in for Python. `-P -m warpsmith ...` is forked, and so is the process
that its workers come from; everything else runs as ever.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from warpsmith.languages.shared.tool import ToolResult

_LARGEST = 1 << 18
_ABOVE = 500
"""Descriptors from here on are out of the way of those that a process asks for."""

CLIENT = """\
#!{python} -IS
import marshal, os, signal, socket, sys
if sys.argv[1:4] != ["-P", "-m", "warpsmith"]:
    os.execv("{python}", ["{python}", *sys.argv[1:]])
host = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
host.connect("{address}")
request = "warpsmith", sys.argv[4:], dict(os.environ), os.getcwd(), [0, 1, 2]
socket.send_fds(host, [marshal.dumps(request)], [0, 1, 2])
host.recv(64)
status = marshal.loads(host.recv(64))
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""
"""The program: it passes on its arguments, environment, folder and streams, and ends as the command does."""


class ForkedProcess:
    """What Warpsmith needs of a process: as `subprocess.Popen` has it."""

    def __init__(
        self,
        address: str,
        command: Sequence[str],
        *,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        pass_fds: Sequence[int] = (),
        env: Mapping[str, str] | None = None,
        **_: object,
    ) -> None:
        """Fork `python -P -m module ...`; it leads a session of its own."""
        self._host, self._code = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), None
        self._host.connect(address)
        module, *arguments = command[list(command).index("-m") + 1 :]
        output = 1 if stdout is None else _number(stdout)
        error = 2 if stderr is None else output if stderr == subprocess.STDOUT else _number(stderr)
        numbers = [1, 2, *pass_fds]
        request = module, arguments, dict(os.environ if env is None else env), str(Path.cwd()), numbers
        socket.send_fds(self._host, [marshal.dumps(request)], [output, error, *pass_fds])
        self.pid: int = marshal.loads(self._host.recv(64))

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._host], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
            self._code = marshal.loads(self._host.recv(64))
            self._host.close()
        return self._code

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _number(file: IO[bytes] | int) -> int:
    return file if isinstance(file, int) else file.fileno()


def _run(
    address: str, command: Sequence[str], *, timeout: float, env: Mapping[str, str], **_: object
) -> subprocess.CompletedProcess[str]:
    """Stand in for `subprocess.run`; what it prints is all in `stderr`."""
    with tempfile.TemporaryFile() as output:
        process = ForkedProcess(address, command, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            code = process.wait(timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return subprocess.CompletedProcess(command, code, None, output.read().decode(errors="replace"))


def forked_subprocess(address: str) -> SimpleNamespace:
    """Return what stands in for the module `subprocess` where a module of Warpsmith starts Python."""
    names = ("DEVNULL", "STDOUT", "TimeoutExpired")
    return SimpleNamespace(
        Popen=partial(ForkedProcess, address),
        run=partial(_run, address),
        **{name: getattr(subprocess, name) for name in names},
    )


class ForkHost:
    """The process that forks, and the stand-in for Python."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fork-")  # a socket's address must be short
        address = str(Path(self._folder.name) / "socket")
        self.subprocess = forked_subprocess(address)
        self.python = Path(self._folder.name) / "python"
        self.python.write_text(CLIENT.format(python=sys.executable, address=address))
        self.python.chmod(0o755)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)  # who connects while it still imports waits
            listener.listen(16)
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listener.fileno()), address],
                pass_fds=(listener.fileno(),),
                stdin=subprocess.DEVNULL,
            )

    def run_tool(
        self, command: Sequence[str], seconds: float, *, environment: Mapping[str, str] | None = None
    ) -> ToolResult:
        """Stand in for `tool.run_tool` where that runs Python."""
        env = {**os.environ, "LC_ALL": "C", **(environment or {})}
        try:
            done = self.subprocess.run(command, timeout=seconds, env=env)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"python took more than {seconds:g} s") from error
        return ToolResult(done.returncode, done.stderr)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def serve(listener: socket.socket) -> tuple[Any, list[int]]:
    """Fork at each request; return the request and its descriptors in the process that shall do it."""
    forked = set()
    while True:
        connection, _ = listener.accept()
        forked -= {pid for pid in forked if os.waitpid(pid, os.WNOHANG)[0]}
        if pid := os.fork():
            forked.add(pid)
        else:
            listener.close()
            data, files, _, _ = socket.recv_fds(connection, _LARGEST, 16)
            leader = os.fork()
            if leader == 0:
                connection.close()
                return marshal.loads(data), files
            for file in files:
                os.close(file)
            _report(connection, leader)
        connection.close()


def _report(connection: socket.socket, leader: int) -> None:
    """Say who was forked and, later, how it ended; end it where nobody listens any more."""
    connection.send(marshal.dumps(leader))
    ended = os.pidfd_open(leader)
    while ended not in select.select([connection, ended], [], [])[0]:
        os.kill(leader, signal.SIGTERM)
        connection = socket.socket()  # never readable
        select.select([ended], [], [])
    code = os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1])
    try:
        connection.send(marshal.dumps(code))
    finally:
        os._exit(0)


def become(
    module: str, arguments: list[str], env: dict[str, str], folder: str, numbers: list[int], files: list[int]
) -> None:
    """Make this process what `python -P -m module` would be, and run it to its end."""
    os.setsid()
    above = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(above, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv[:] = [module, *arguments]
    if first := env.get("PYTHONPATH"):
        sys.path[:0] = first.split(os.pathsep)
        sys.modules.pop("sitecustomize", None)
        with contextlib.suppress(ModuleNotFoundError):
            import sitecustomize  # noqa: F401 - as Python does at its start
    code = 0
    sys.modules.pop(module, None)  # the process that forked may have imported it
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            sys.stderr.write(f"{ending.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Import what commands and workers need, then fork."""
    listener, address = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    import torch

    from warpsmith.cli import main as command
    from warpsmith.hooks import run  # noqa: F401
    from warpsmith.lab.workers import process, worker, worker_host  # noqa: F401

    command.load_app()
    worker_host.subprocess = forked_subprocess(address)  # type: ignore[attr-defined]
    torch.set_num_threads(1)  # no thread is there when it forks
    process.prctl(1, signal.SIGKILL)  # it ends with the tests
    (module, arguments, env, folder, numbers), files = serve(listener)
    become(module, arguments, env, folder, numbers, files)


if __name__ == "__main__":
    main()
