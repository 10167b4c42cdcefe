"""A shell command whose script runs as it is, step by step, with the requests of a `Runner`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.packages import require_torch
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.command import INJECT
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner, last_output_line
from warpsmith.program.scripts.script_loop import find_script_loop

_POLL_SECONDS = 0.05
_END_SECONDS = 5.0
_MEMORY = ("out of memory", "OutOfMemoryError", "MemoryError")


class CommandEnded(SolutionFailed):
    """The command ended by itself before all steps that were asked for had run."""


def open_runner(
    program: Program,
    original: Mapping[Path, Path] | None = None,
    *,
    seed: int = 0,
    timeout: float = TIMEOUT,
    log: Path | None = None,
) -> Runner:
    """Return the runner of a program: of its step, or of the script that its command runs."""
    kind = Runner if program.command is None else CommandRunner
    return kind(program, original, seed=seed, timeout=timeout, log=log)


class CommandRunner(Runner):
    """A command in processes of its own, as a context manager that kills them all.

    With several ranks each request goes to every one of them, and the first rank answers.
    """

    runs_commands = True

    def start(self) -> ProgramFacts:
        """Run the command to the end of its first forward and backward pass, and return its facts there.

        Raises:
            Misuse: it ends without a step, or writes a file of the project.
        """
        require_torch("The program")
        self._ranks: list[Channel] = []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._file("steps", ".socket")))
            listener.listen()
            listener.settimeout(_POLL_SECONDS)
            self._start_command(listener.getsockname())
            self._accept_ranks(listener)
        return self.facts()

    def close(self) -> None:
        """Kill the command and everything that it started."""
        for channel in getattr(self, "_ranks", [])[1:]:
            channel.close()
        super().close()

    def _facts(self, *, observe: bool) -> ProgramFacts:
        """Return the facts; processes of the command itself are none that a step started."""
        return super()._facts(observe=observe).model_copy(update={"processes": 0})

    def _start_command(self, address: str) -> None:
        program = self.program
        loop = find_script_loop(program.path)
        settings = self._file("settings", ".json")
        settings.write_text(
            json.dumps(
                {
                    "socket": address,
                    "script": str(program.path),
                    "label": program.label,
                    "work": loop.work if loop else "optimizer",
                    "seed": self._seed,
                    "copies": self._original,
                    "folder": str(program.path.parent),
                    "root": str(program.root),
                    "writable": [str(path) for path in program.writes],
                    "refusal": str(self._refusal),
                }
            )
        )
        paths = (str(INJECT), os.environ.get("PYTHONPATH", ""))
        env = {
            **os.environ,
            "PYTHONHASHSEED": str(self._seed),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "WARPSMITH_STEPS": str(settings),
            **self._env,
        }
        output = self._open_log()
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", program.command or ""],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            start_new_session=True,
        )
        if not isinstance(output, int):
            output.close()

    def _accept_ranks(self, listener: socket.socket) -> None:
        """Wait until every rank is about to end its first step."""
        deadline, count = time.monotonic() + self._timeout, 1
        greeted: list[tuple[int, Channel]] = []
        while len(greeted) < count:
            try:
                channel = Channel(listener.accept()[0])
                hello, _ = channel.receive()
            except TimeoutError:
                self._watch_start(deadline)
            except ChannelClosed:
                raise self._exit_error("its start") from None
            else:
                greeted.append((hello["rank"], channel))
                count = hello["ranks"]
        self._ranks = [channel for _, channel in sorted(greeted, key=lambda item: item[0])]
        self._channel = self._ranks[0]

    def _watch_start(self, deadline: float) -> None:
        self._watch()
        if self._process is not None and self._process.poll() is not None:
            raise self._exit_error("its start")
        if time.monotonic() > deadline:
            self._kill()
            raise TimedOut(
                f"`{self._label}`: its first step did not end within {self._timeout:g} s and it was killed; give "
                "--timeout SECONDS, or less work before the first step."
            )

    def _send(self, message: Message) -> None:
        super()._send(message)
        for rank, channel in enumerate(self._ranks[1:], 1):
            files = {name: f"{message[name]}.{rank}" for name in ("file", "saved") if message.get(name)}
            channel.send({**message, **files})

    def _receive(self) -> Message:
        answer = super()._receive()
        for channel in self._ranks[1:]:
            other, _ = channel.receive()
            answer = answer if other["ok"] else other
        return answer

    @property
    def _refusal(self) -> Path:
        return Path(self._folder.name) / "refusal.txt"

    def _request_error(self, answer: Message, do: str) -> MachineLacks | SolutionFailed | Misuse:
        return self._write_error() or super()._request_error(answer, do)

    def _exit_error(self, doing: str) -> SolutionFailed | MachineLacks | Misuse:
        """Return the error for a command that ended by itself."""
        code = self._kill(_END_SECONDS)
        refused = self._write_error()
        if refused is not None:
            return refused
        line = last_output_line(self._log) if self._log is not None else "."
        if any(word in line for word in _MEMORY):
            return MachineLacks(
                f"`{self._label}` runs out of memory as it stands: {line} Free the device or make it smaller."
            )
        if code:
            return SolutionFailed(
                f"`{self._label}` failed with exit code {code} during {doing}: {line}{self._log_hint()}"
            )
        if not self._ranks:
            return Misuse(
                f"`{self._label}` ended and no step of it was seen: no optimizer of PyTorch stepped in a Python "
                f"process of it; give a command that trains, or FILE with --step.{self._log_hint()}"
            )
        return CommandEnded(
            f"`{self._label}` ended by itself during {doing}; have it run more steps: it is stopped when enough "
            "are measured."
        )

    def _write_error(self) -> Misuse | None:
        """Return the error for a file that the script was about to write, if that ended it."""
        if not self._refusal.is_file():
            return None
        path, line = self._refusal.read_text().splitlines()[:2]
        location = f" ({line})" if line else ""
        name = os.path.relpath(path, self.program.root)
        return Misuse(
            f"`{self._label}` was stopped before it wrote {name}{location}, since it runs many times: switch that "
            f"off by its arguments, or allow it with --writes {name}."
        )
