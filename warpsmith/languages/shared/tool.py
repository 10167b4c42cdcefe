"""Run a compiler or another tool under a time limit, and show its output safely."""

from __future__ import annotations

import os
import signal
import subprocess
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from warpsmith.passed_environment import tool_environment

_LINE = 240


class ToolResult(NamedTuple):
    """Result of a command that ended."""

    code: int
    """Its exit status."""
    output: str
    """Its standard output and error together."""


def run_tool(
    command: Sequence[str | Path],
    seconds: float,
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> ToolResult:
    """Run `command` in a process group of its own; the whole group is killed after `seconds`.

    Raises:
        TimeoutError: it took more than `seconds`.
    """
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=cwd,
        env={**tool_environment(), "LC_ALL": "C", **(environment or {})},
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
    return ToolResult(process.returncode, output.decode(errors="replace"))


def fence_lines(lines: Iterable[str], limit: int = 8) -> str:
    """Return the first lines as a fenced block, without control characters and unable to end the fence."""
    plain = [_plain(line).replace("```", "'''")[:_LINE] for line in lines]
    return "\n".join(["```", *plain[:limit], "```"])


def _plain(line: str) -> str:
    characters = (
        char for char in line.expandtabs(4) if unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
    )
    return "".join(characters).rstrip()
