"""A shell command whose script runs as it is, step by step, with the requests of a `Runner`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from select import select

from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.packages import require_torch
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.command import INJECT
from warpsmith.program.process.memory_errors import names_lack_of_memory
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, WATCH_SECONDS, Runner, last_output_line
from warpsmith.program.scripts import rank_failures
from warpsmith.program.scripts.script_loop import find_script_loop

_POLL_SECONDS = 0.05
_END_SECONDS = 5.0
_GRACE_SECONDS = 1.0
"""Seconds in which a rank that failed before another may still say so; `_END_SECONDS` if it must have."""

_STACK_SECONDS = 0.2
"""Seconds in which a rank writes where it is."""

_OWN_PORT = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "localhost:0", "PET_LOCAL_ADDR": "127.0.0.1"}
"""Defaults of torchrun's options, with which two runs that are timed in turns do not ask for one port: PyTorch
2.11 takes 29500 for each. Options in the command come before them."""


class CommandEnded(SolutionFailed):
    """The command ended by itself before all steps that were asked for had run."""


def open_runner(
    program: Program,
    original: Mapping[Path, Path] | None = None,
    *,
    seed: int = 0,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Runner:
    """Return the runner of a program: of its step, or of the script that its command runs."""
    kind = Runner if program.command is None else CommandRunner
    return kind(program, original, seed=seed, timeout=timeout, env=env, log=log)


class CommandRunner(Runner):
    """A command in processes of its own, as a context manager that kills them all.

    With several ranks each request goes to every one of them, and ends when all have answered.
    """

    runs_commands = True

    def start(self) -> ProgramFacts:
        """Run the command to the end of its first forward and backward pass, and return its facts there.

        Raises:
            Misuse: it ends without a step, or writes a file of the project.
        """
        require_torch("The program")
        self._accepted: list[Channel] = []
        self._ranks: list[Channel] = []
        self._processes: list[int] = []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._file("steps", ".socket")))
            listener.listen()
            listener.settimeout(_POLL_SECONDS)
            self._start_command(listener.getsockname())
            self._accept_ranks(listener)
        return self.facts()

    def close(self) -> None:
        """Kill the command and everything that it started."""
        for channel in getattr(self, "_accepted", ()):
            channel.close()
        super().close()

    def _facts(self, *, observe: bool) -> list[ProgramFacts]:
        """Return the facts of each rank; processes of the command itself are none that a step started."""
        return [facts.model_copy(update={"processes": 0}) for facts in super()._facts(observe=observe)]

    def _start_command(self, address: str) -> None:
        program = self.program
        loop = find_script_loop(Path(self._original.get(str(program.path), program.path)))
        settings = self._file("settings", ".json")
        settings.write_text(
            json.dumps(
                {
                    "socket": address,
                    "script": str(program.path),
                    "label": program.label,
                    "work": loop.work if loop else "optimizer",
                    "seed": self._seed,
                    "eager_random": self.eager_random,
                    "copies": self._original,
                    "folder": str(program.path.parent),
                    "root": str(program.root),
                    "writable": [str(path) for path in program.writes],
                    "refusal": str(self._refusal),
                    "stacks": self._folder.name,
                }
            )
        )
        paths = (str(INJECT), os.environ.get("PYTHONPATH", ""))
        env = {
            **_OWN_PORT,
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
        greeted: list[tuple[Message, Channel]] = []
        while len(greeted) < count:
            try:
                hello, channel = self._accept(listener)
            except TimeoutError:
                self._watch_start(deadline)
            except ChannelClosed:
                raise self._exit_error("its start") from None
            else:
                if "ranks" not in hello:
                    raise self._start_error(listener, {hello["rank"]: hello})
                greeted.append((hello, channel))
                count = hello["ranks"]
                if hello["local"] < count:
                    self._kill()
                    raise Misuse(
                        f"`{self._label}` has {count} ranks, {hello['local']} of them on this host; give a "
                        "command whose ranks are all on one."
                    )
        greeted.sort(key=lambda item: int(item[0]["rank"]))
        self._processes = [hello["process"] for hello, _ in greeted]
        self._ranks = [channel for _, channel in greeted]
        self._channel = self._ranks[0]

    def _accept(self, listener: socket.socket) -> tuple[Message, Channel]:
        """Accept the connection of a rank, and return its first message."""
        channel = Channel(listener.accept()[0])
        self._accepted.append(channel)
        return channel.receive()[0], channel

    def _start_error(
        self, listener: socket.socket, failed: dict[int, Message]
    ) -> SolutionFailed | MachineLacks | Misuse:
        """Return the error for the rank that failed first before its first step ended."""
        world = int(next(iter(failed.values()))["ranks_expected"])
        with contextlib.suppress(TimeoutError, ChannelClosed):
            while len(failed) < world:  # a rank that fails first need not be the first to say so
                hello, _ = self._accept(listener)
                if "ranks" not in hello:
                    failed[hello["rank"]] = hello
        return self._failure_error(failed, world, "its start")

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

    def _rank_files(self, path: Path) -> list[Path]:
        return [path, *(path.with_name(f"{path.name}.{rank}") for rank in range(1, len(self._ranks)))]

    def _await_answer(self, doing: str) -> Message:
        """Wait until every rank has answered, or one has failed.

        Raises:
            SolutionFailed, MachineLacks: a rank failed.
            TimedOut: a rank did not answer in time; the others may have.
            ChannelClosed: all ranks ended by themselves.
        """
        if len(self._ranks) == 1:
            return super()._await_answer(doing)
        deadline = time.monotonic() + self._timeout
        answers: dict[int, Message | None] = {}
        while len(answers) < len(self._ranks):
            if self._collect_answers(answers, min(WATCH_SECONDS, deadline - time.monotonic())):
                break
            if time.monotonic() >= deadline:
                raise self._hang_error(doing, sorted(answers))
            self._watch()
        if all(answer and answer["ok"] for answer in answers.values()):
            return answers[0] or {}
        failed = time.monotonic()
        while len(answers) < len(self._ranks):
            grace = _END_SECONDS if rank_failures.only_misses_peers(answers) else _GRACE_SECONDS
            if time.monotonic() >= failed + grace:
                break
            self._collect_answers(answers, failed + grace - time.monotonic())
        if len(answers) == len(self._ranks) and not any(answers.values()):
            raise ChannelClosed
        raise self._failure_error(answers, len(self._ranks), doing)

    def _collect_answers(self, answers: dict[int, Message | None], seconds: float) -> bool:
        """Receive what ranks answer within `seconds`; None stands for one that ended. Return true at a failure."""
        waiting = {channel: rank for rank, channel in enumerate(self._ranks) if rank not in answers}
        failed = False
        for channel in select(list(waiting), [], [], max(0.0, seconds))[0]:
            rank = waiting[channel]
            try:
                answers[rank] = channel.receive()[0]
            except ChannelClosed:
                answers[rank] = None
            failed = failed or not (answers[rank] or {}).get("ok")
        return failed

    def _failure_error(
        self, answers: Mapping[int, Message | None], world: int, doing: str
    ) -> SolutionFailed | MachineLacks | Misuse:
        """Return the error for the rank that failed first."""
        self._kill(_END_SECONDS)
        refusal = next((answer for answer in answers.values() if answer and answer.get("kind") == "refused"), None)
        if refusal is not None:
            return super()._request_error(refusal, "run")
        failure = rank_failures.first_rank_failure(answers, self._log)
        if failure is None:
            raise RuntimeError("no rank failed")
        error = rank_failures.failure_error(self._label, failure, world, doing, self._log)
        return self._write_error() or error

    def _hang_error(self, doing: str, finished: Sequence[int]) -> TimedOut:
        """Kill all ranks, and return the error for those that do not answer, with the lines at which they are."""
        late = [rank for rank in range(len(self._ranks)) if rank not in finished]
        places = [f"rank {rank}{self._current_line(rank)}" for rank in late]
        self._kill()
        subject = f"`{self._label}`: {' and '.join(places)} did not end {doing} within {self._timeout:g} s"
        if finished:
            others = " and ".join(f"rank {rank}" for rank in finished)
            return TimedOut(
                f"{subject}, and {others} did: look for a collective that not every rank calls; all ranks were "
                "ended."
            )
        return TimedOut(f"{subject}; all ranks were ended: give --timeout SECONDS, or a step that ends.")

    def _current_line(self, rank: int) -> str:
        """Return where a rank's script is, as ` (train.py:12)`; empty if it cannot say."""
        file = self._stack_file(self._processes[rank])
        with contextlib.suppress(OSError):
            os.kill(self._processes[rank], signal.SIGUSR2)
        time.sleep(_STACK_SECONDS)
        script = self.program.path
        lines = re.findall(rf'File "{re.escape(str(script))}", line (\d+)', _read_text(file))
        return f" ({script.name}:{lines[0]})" if lines else ""

    def _stack_file(self, process: int) -> Path:
        return Path(self._folder.name) / f"stack-{process}.txt"

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
        if names_lack_of_memory(line):
            return MachineLacks(
                f"`{self._label}` runs out of memory as it stands: {line} Free the device or make it smaller."
            )
        logged = rank_failures.logged_failure(self._log) if code else None
        if logged is not None:  # the launcher ended the other ranks before they could say a word
            world = len(self._ranks) or None
            return rank_failures.failure_error(self._label, logged, world, doing, self._log)
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


def _read_text(file: Path) -> str:
    return file.read_text(errors="replace") if file.is_file() else ""
