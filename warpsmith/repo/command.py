"""Commands of the project settings, run with a time limit; nothing that they start outlives them."""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_GRACE_SECONDS = 30
_WORDS = 200
_ERRORS = tuple(
    re.compile(text)
    for text in (
        r"^\S+?[:(]\d+(:\d+|\))?:? *(fatal )?error\b",  # gcc, clang, nvcc
        r"\.pyx:\d+:\d+: ",  # Cython
        r"^CMake Error|meson\.build:\d+:\d+: ERROR|undefined reference to|^(\S+: )?(fatal )?error: ",
        r"^E   +\S",  # pytest
    )
)
"""Patterns of lines that state an error, by rank: a compiler's line says more than the build tool's."""


@dataclass(frozen=True)
class FinishedCommand:
    """Result of a command."""

    command: str
    """The command itself."""
    exit_code: int | None
    """Exit code; None if the command was stopped at its limit."""
    seconds: float
    """Duration by this process's clock."""
    limit: float
    """Time limit in seconds."""
    left_running: int
    """Number of processes that it left behind, which were killed."""
    log: Path
    """File with its stdout; its stderr lies next to it with the suffix `.err`."""
    folder: Path
    """Folder that it ran in."""

    @property
    def ok(self) -> bool:
        """True if it ended by itself with exit code 0."""
        return self.exit_code == 0

    @property
    def output(self) -> str:
        """Text of its stdout."""
        return self.log.read_text(errors="replace")

    @property
    def failure(self) -> str:
        """Description of a failure: the exit code or the limit, and the last lines of stdout and stderr."""
        end = f"exit code {self.exit_code}"
        if self.exit_code is None:
            end = f"stopped after its limit of {self.limit:g} s"
        texts = [self.output, self.log.with_suffix(".err").read_text(errors="replace")]
        last = [text.strip().split("\n")[-1] for text in texts if text.strip()]
        lines = dict.fromkeys(self._shorten(line) for line in (*first_error_lines(texts[::-1]), *last))
        output = f": {'; '.join(lines)}" if lines else ""
        left = f" (it left {self.left_running} processes running, which were killed)" if self.left_running else ""
        return f"{end}{output}{left}"

    def _shorten(self, line: str) -> str:
        """Return a line of bounded length, without the absolute path of the folder."""
        return " ".join(line.replace(f"{self.folder}/", "").split())[:_WORDS]


def first_error_lines(texts: Sequence[str]) -> list[str]:
    """Return the first line that states an error of a compiler, a build tool or a test, at most one."""
    for pattern in _ERRORS:
        for text in texts:
            for line in text.splitlines():
                if pattern.search(line):
                    return [line]
    return []


def run_command(
    command: str, folder: Path, limit: float, log: Path, environment: Mapping[str, str] | None = None
) -> FinishedCommand:
    """Run a shell command in `folder` for at most `limit` seconds, and kill everything that it leaves running.

    Args:
        command: command line for /bin/sh.
        folder: the working folder.
        limit: time limit in seconds.
        log: file for its stdout; its stderr goes to a file next to it.
        environment: variables in addition to this process's own.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Two versions of a file may have the same size and time: cached bytecode would then be the wrong one.
    own |= {"PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    read, write = os.pipe()
    started = time.monotonic()
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
        guard = subprocess.Popen(
            (sys.executable, "-P", "-m", "warpsmith.repo.command_guard", command, str(write)),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env=own,
            pass_fds=(write,),
            start_new_session=True,  # a signal to our group must not end it before it has killed its descendants
        )
    os.close(write)
    try:
        code = _wait(guard, limit)
    finally:
        _end(guard)
        with open(read, "rb") as status:  # noqa: PTH123 - a pipe
            left = status.read().decode().strip()
    seconds = time.monotonic() - started
    return FinishedCommand(command, code, seconds, limit, int(left or 0) if code is not None else 0, log, folder)


def _wait(guard: subprocess.Popen[bytes], limit: float) -> int | None:
    ended = os.pidfd_open(guard.pid)  # `Popen.wait` with a limit polls, and would add to the measured time
    try:
        return guard.wait() if select.select([ended], [], [], limit)[0] else None
    finally:
        os.close(ended)


def _end(guard: subprocess.Popen[bytes]) -> None:
    """Release the guard: it kills its descendants and ends."""
    if guard.stdin:
        with contextlib.suppress(OSError):
            guard.stdin.close()
    try:
        guard.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
