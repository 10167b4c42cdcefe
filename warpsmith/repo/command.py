"""Commands of a contract, run with a time limit; nothing that they start outlives them."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_GRACE_SECONDS = 30
_WORDS = 200


@dataclass(frozen=True)
class FinishedCommand:
    """How a command ended."""

    command: str
    """What was run."""
    exit_code: int | None
    """Null where it was stopped at its limit."""
    seconds: float
    """By this process's clock."""
    limit: float
    """Seconds that it was given."""
    left_running: int
    """Processes that it left behind; they were killed."""
    log: Path
    """Its stdout; its stderr is beside it, with the ending `.err`."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.exit_code == 0

    @property
    def output(self) -> str:
        """Its stdout."""
        return self.log.read_text(errors="replace")

    @property
    def why(self) -> str:
        """How it failed, in a few words: how it ended, and the last lines of its stdout and stderr."""
        end = f"exit code {self.exit_code}"
        if self.exit_code is None:
            end = f"stopped after its limit of {self.limit:g} s"
        texts = (self.output, self.log.with_suffix(".err").read_text(errors="replace"))
        last = [" ".join(text.split("\n")[-1].split())[:_WORDS] for text in map(str.strip, texts) if text]
        shown = f": {'; '.join(last)}" if last else ""
        left = f" (it left {self.left_running} processes running, which were killed)" if self.left_running else ""
        return f"{end}{shown}{left}"


def run_command(
    command: str, folder: Path, limit: float, log: Path, environment: Mapping[str, str] | None = None
) -> FinishedCommand:
    """Run a shell command in `folder` for at most `limit` seconds, and kill whatever it leaves running.

    Args:
        command: for /bin/sh.
        folder: the working folder.
        limit: seconds.
        log: where its stdout goes; its stderr goes beside it.
        environment: variables on top of this process's own.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Two versions of a file may have the same size and second: cached bytecode of one must not serve the other.
    own |= {"PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    read, write = os.pipe()
    started = time.monotonic()
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
        keeper = subprocess.Popen(
            (sys.executable, "-P", "-m", "warpsmith.repo.command_guard", command, str(write)),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env=own,
            pass_fds=(write,),
            start_new_session=True,  # a signal to our group must not end it before it has killed what it keeps
        )
    os.close(write)
    try:
        code = _wait(keeper, limit)
    finally:
        _end(keeper)
        with open(read, "rb") as status:  # noqa: PTH123 - a pipe
            left = status.read().decode().strip()
    seconds = time.monotonic() - started
    return FinishedCommand(command, code, seconds, limit, int(left or 0) if code is not None else 0, log)


def _wait(keeper: subprocess.Popen[bytes], limit: float) -> int | None:
    ended = os.pidfd_open(keeper.pid)  # waiting with a limit would look only now and then, and the clock runs
    try:
        return keeper.wait() if select.select([ended], [], [], limit)[0] else None
    finally:
        os.close(ended)


def _end(keeper: subprocess.Popen[bytes]) -> None:
    """Let go of the keeper: it kills what is below it, and ends."""
    if keeper.stdin:
        with contextlib.suppress(OSError):
            keeper.stdin.close()
    try:
        keeper.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
