"""Shells: where commands run, on this machine or on a host that SSH reaches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import IO, Protocol

from warpsmith.errors import MachineLacks, Unreachable

COMMAND_MISSING = 127
"""Exit code of a command that does not exist."""

_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "TERM", "LANG", "LC_ALL", "SLURM_CONF", "KRB5CCNAME")
"""Variables that a command here sees: those of an allocation around it would change its defaults."""


class Shell(Protocol):
    """A machine on which commands run."""

    location: str
    """Name of the machine in a sentence."""

    def open(self) -> None:
        """Connect; raises MachineLacks if that fails."""

    def close(self) -> None:
        """End the connection."""

    def run(self, command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end; 127 is the code of one that does not exist. Raises MachineLacks."""

    def start(self, command: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command with pipes to it; its stderr goes to `errors`."""

    def failure(self, code: int, text: str) -> MachineLacks:
        """Return the error for an end of the connection with this code and these messages."""


class LocalShell:
    """Commands on this machine, without this process's own environment."""

    location = "this machine"

    def open(self) -> None:
        """Open no connection."""

    def close(self) -> None:
        """End no connection."""

    def run(self, command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end; 127 is the code of one that does not exist."""
        try:
            return subprocess.run(
                command, input=text, capture_output=True, text=True, check=False, cwd="/", env=_environment()
            )
        except FileNotFoundError:
            return subprocess.CompletedProcess(command, COMMAND_MISSING, "", "")

    def start(self, command: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command with pipes to it; its stderr goes to `errors`."""
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env=_environment(),
            process_group=0,  # Ctrl-C in a terminal is for this process, which then cancels the job over the pipe
        )

    def failure(self, code: int, text: str) -> MachineLacks:
        """Return the error for an end of a command with this code and these messages."""
        return Unreachable(f"a command failed here, code {code}: {last_line(text)}.")


def last_line(text: str) -> str:
    """Return the last line that says something, without the point at its end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "no message"


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
