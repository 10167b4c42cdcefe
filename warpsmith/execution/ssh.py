"""SSH: one shared connection to a host by the system's `ssh`, and one sentence for each way in which it fails."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from warpsmith.errors import MachineLacks, Unreachable
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.shell import COMMAND_MISSING, last_line
from warpsmith.execution.station_command import missing_python, station_command

CONNECT_SECONDS = 15
"""Time limit of a connection."""

PERSIST_SECONDS = 600
"""Time for which the shared connection stays open after its last use."""

_ALIVE = ("ServerAliveInterval=5", "ServerAliveCountMax=3")
_ENVIRONMENT = (
    "PATH", "HOME", "USER", "LOGNAME", "TERM", "LANG", "LC_ALL", "SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY",
    "KRB5CCNAME", "XDG_RUNTIME_DIR",
)  # fmt: skip
"""Variables that `ssh` itself may see; a `SendEnv` of the user's configuration has nothing else to send."""

_CONNECTION_LOST = 255

_REASONS = (
    ("IDENTIFICATION HAS CHANGED", "its host key has changed; find out why before you connect again"),
    ("Host key verification failed", "its host key is not known; run `ssh {host}` once and compare the key"),
    ("Permission denied", "it does not let you in; `ssh {host}` must work without a password being typed"),
    ("Could not resolve", "its name is not known; correct the context or your ssh_config"),
    ("Connection refused", "nothing answers at its SSH port"),
    ("timed out", "it does not answer"),
    (
        "too long",
        "the path of the connection's socket is too long; set XDG_RUNTIME_DIR to a folder with a short one",
    ),
    ("No route to host", "there is no way to it from this network"),
)
"""Text of `ssh` to the reason in a sentence, the first that fits."""


class SshConnection:
    """Connection to the host of a context, shared by all commands of this user."""

    def __init__(self, entry: NamedContext) -> None:
        """Prepare a connection; nothing is opened yet."""
        self.entry, self._host = entry, str(entry.context.ssh)
        self.location = self._host
        self.allocation = None
        config = entry.context.ssh_config
        self._base = ["ssh", *(("-F", str(Path(config).expanduser())) if config else ())]
        self._base += ["-a", "-x", "-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"]
        self._base += [part for option in _ALIVE for part in ("-o", option)]
        self._base += ["-o", f"ControlPath={private_runtime_folder() / '%C'}"]

    def open(self) -> None:
        """Open the shared connection, unless it is open.

        Raises:
            MachineLacks: there is no `ssh`.
            Unreachable: it cannot connect.
        """
        if shutil.which("ssh") is None:
            raise MachineLacks("This machine has no `ssh`; install OpenSSH's client (Debian: `openssh-client`).")
        if self._control("check").returncode == 0:
            return
        # Of two that open it at once, one becomes the master; the other only runs its command, and ends.
        options = ["-o", "ControlMaster=auto", "-o", f"ControlPersist={PERSIST_SECONDS}"]
        with tempfile.TemporaryFile() as errors:  # a pipe would stay open as long as the connection
            code = subprocess.run(
                [*self._base, *options, self._host, "true"],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=_environment(),
                check=False,
            ).returncode
            if code:
                raise self.failure(code, _read(errors))

    def close(self) -> None:
        """Close the shared connection; other commands that use it lose it too."""
        self._control("exit")

    def run(self, command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command there to its end; raises Unreachable if the connection does not hold so long."""
        result = subprocess.run(
            [*self._base, "-o", "ControlMaster=no", self._host, shlex.join(command)],
            input=text,
            capture_output=True,
            text=True,
            env=_environment(),
            check=False,
        )
        if result.returncode == _CONNECTION_LOST:
            raise self.failure(result.returncode, result.stderr)
        return result

    def start(self, command: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command over the shared connection, with pipes to it; its stderr goes to `errors`."""
        return self._start(shlex.join(command), errors)

    def start_station(self, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the other end over the shared connection, with pipes to it; its stderr goes to `errors`."""
        return self._start(station_command(self.entry.context.python), errors)

    def interruption(self) -> None:
        """Return nothing: a job there ends only by itself."""

    def _start(self, command: str, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._base, "-o", "ControlMaster=no", self._host, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
            process_group=0,  # Ctrl-C in a terminal is for this process, which then cancels the job over the pipe
        )

    def failure(self, code: int, text: str) -> MachineLacks:
        """Return the error for an end of `ssh` with this code and these messages."""
        name = self.entry.name
        if code in (126, COMMAND_MISSING):
            return missing_python(self.entry, self.location)
        for sign, reason in _REASONS:
            if sign in text:
                return Unreachable(f"{name}: {self._host}: {reason.format(host=self._host)}.")
        return Unreachable(f"{name}: the connection to {self._host} failed, code {code}: {last_line(text)}.")

    def _control(self, action: str) -> subprocess.CompletedProcess[bytes]:
        command = [*self._base, "-O", action, self._host]
        return subprocess.run(command, capture_output=True, env=_environment(), check=False)


def private_runtime_folder() -> Path:
    """Return this user's own folder for sockets and locks; the paths of sockets must stay short."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"warpsmith-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise MachineLacks(
            f"{folder} is open to other users; remove it, or set XDG_RUNTIME_DIR to a folder of yours."
        )
    return folder


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
