"""Run a compiler under a time limit, and show what it said as data."""

from __future__ import annotations

import os
import signal
import subprocess
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_LINE = 240


class Finished(NamedTuple):
    """How a command ended."""

    code: int
    """Its exit status."""
    output: str
    """Its standard output and error together."""


def run(
    command: Sequence[str | Path],
    seconds: float,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run `command` in a process group of its own; past its time the whole group is killed.

    Raises:
        TimeoutError: it took more than `seconds`.
    """
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{Path(str(command[0])).name} took more than {seconds:g} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return Finished(process.returncode, output.decode(errors="replace"))


def fenced(lines: Iterable[str], limit: int = 8) -> str:
    """The first lines as a fenced block: without control characters, and unable to end the fence."""
    kept = [_plain(line).replace("```", "'''")[:_LINE] for line in lines]
    return "\n".join(["```", *kept[:limit], "```"])


def _plain(line: str) -> str:
    kept = (char for char in line.expandtabs(4) if unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs"))
    return "".join(kept).rstrip()
