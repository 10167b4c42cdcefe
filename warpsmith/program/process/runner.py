"""A program in a process of its own: started, its steps run and timed from outside, killed with all it started."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from warpsmith import files
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut
from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.models import Trace
from warpsmith.program.models import ProgramFacts, StepsRun, StepValues, TensorSummary
from warpsmith.program.process.program import Program

MOST_PROCESSES = 512
"""A program that starts more is killed: it forks without end."""

TIMEOUT = 600.0
"""Seconds that starting, or one request for steps, may take."""

_WATCH_SECONDS = 0.5
_GRACE_SECONDS = 1.0
_STDERR = 2
_TAIL, _LINE = 4000, 300


class Runner:
    """One program in its process; a context manager. Ends with it: the process and everything that it started.

    Each method that has the program do something

    Raises:
        Misuse: it has no such step, or that needs arguments.
        SolutionFailed: it fails, exits or dies.
        MachineLacks: there is no PyTorch, or it runs out of memory.
        TimedOut: it does not end in time.
    """

    def __init__(
        self,
        program: Program,
        original: Mapping[Path, Path] | None = None,
        *,
        seed: int = 0,
        timeout: float = TIMEOUT,
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """Make it ready; `start` starts it.

        Args:
            program: a file or module with a step.
            original: files of the program, and the copies whose content is run in their place.
            seed: of random, numpy, torch and hashes.
            timeout: seconds for each request.
            env: what comes on top of this process's environment.
            log: where the program's output goes; by default to stderr.

        Raises:
            Misuse: the program is a shell command.
        """
        if program.command is not None:
            raise Misuse("A shell command has no step to call; give a Python file or module with --step.")
        self.program = program
        self._original = {str(path): str(copy) for path, copy in (original or {}).items()}
        self._seed, self._timeout, self._env, self._log = seed, timeout, dict(env or {}), log
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._numbers = itertools.count()
        self._folder = tempfile.TemporaryDirectory(prefix="warpsmith-program-")

    def start(self) -> ProgramFacts:
        """Import the program and call its setup; what it is made of before its first step.

        The program is killed when the thread that started it ends.
        """
        if find_spec("torch") is None:
            raise MachineLacks(f"{sys.executable} has no PyTorch; install warpsmith[lab] where the program runs.")
        self._channel, theirs = Channel.pair()
        output: IO[bytes] | int = _STDERR
        if self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            output = self._log.open("wb")
        with theirs:
            env = {**os.environ, "PYTHONHASHSEED": str(self._seed), **self._env}
            self._process = spawn_server(theirs.fileno(), output, env)
        if not isinstance(output, int):
            output.close()
        program = self.program
        self._ask(
            "load", "its start", path=str(program.path), folder=str(program.folder), module=program.module,
            step=program.step, setup=program.setup, args=program.args, label=program.label,
            original=self._original, seed=self._seed,
        )  # fmt: skip
        return self.facts()

    def observe(self) -> ProgramFacts:
        """The facts with what a step calls; runs three steps, under the profiler."""
        return self._facts(observe=True)

    def facts(self) -> ProgramFacts:
        """What it is made of now."""
        return self._facts(observe=False)

    def run(self, count: int, *, values: bool = True, keep: bool = False) -> StepsRun:
        """Run `count` steps; the device has finished at the end.

        With `keep` their tensors are saved whole, to a file that is there until the runner is closed.
        Without `values` nothing is taken of what they return: that costs a pass over large tensors.
        """
        self._ask("ready", "preparing steps")
        begin = time.perf_counter()
        ran = self._ask("run", f"{count} steps", count=count, values=values, keep=keep)
        seconds = time.perf_counter() - begin
        saved = str(self._file("saved", ".pt")) if keep else None
        found: tuple[StepValues, ...] = ()
        if values or keep:
            answer = self._file("values", ".json")
            self._ask("values", "summing up what the steps returned", file=str(answer), saved=saved)
            found = tuple(map(_parse_values, _read_answer(answer)))
        return StepsRun(first=ran["first"], count=count, seconds=seconds, values=found, saved=saved)

    def state(self) -> dict[str, TensorSummary]:
        """Parameters and buffers of its modules, by name."""
        return {name: TensorSummary.model_validate(each) for name, each in self.call("state").items()}

    def peak_bytes(self) -> int:
        """Most bytes on the device since the last `run` began; without a GPU, resident in the process."""
        return int(self._ask("peak", "telling its memory")["bytes"])

    def trace(self, steps: int, folder: Path) -> Trace:
        """Run one step and `steps` more under torch.profiler; the folder keeps the Chrome trace.

        Raises:
            MissingInput: the steps do nothing in PyTorch.
        """
        made = self._file("trace", ".json.gz")
        self._ask("trace", f"{1 + steps} steps under the profiler", steps=steps, file=str(made))
        kept = folder / traces.FILE
        files.write_file(kept, made.read_bytes())
        made.unlink()
        return traces.read(kept)

    def call(self, task: str, **args: object) -> Any:  # noqa: ANN401 - JSON
        """Have it run `warpsmith.program.tasks.<task>`; what that returns. The arguments must be JSON."""
        answer = self._file(task, ".json")
        self._ask("task", f"the task {task}", task=task, args=args, file=str(answer))
        return _read_answer(answer)

    def descendants(self) -> list[int]:
        """Living processes that it started."""
        return [] if self._process is None else process.list_descendants([self._process.pid], MOST_PROCESSES)

    def close(self) -> None:
        """Kill it with everything that it started."""
        self._kill()
        self._folder.cleanup()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _facts(self, *, observe: bool) -> ProgramFacts:
        found = self.call("facts", observe=observe)
        return ProgramFacts.model_validate({**found, "processes": len(self.descendants())})

    def _ask(self, do: str, doing: str, **more: object) -> Message:
        """Send one request and wait for its answer, watching the clock and the number of processes."""
        if self._channel is None or self._process is None:
            raise RuntimeError("the runner is not started, or its program has ended")
        try:
            self._channel.send({"do": do, **more})
            if not self._channel.wait(time.monotonic() + self._timeout, _WATCH_SECONDS, self._watch):
                self._kill()
                raise TimedOut(
                    f"{self._label}: {doing} took more than {self._timeout:g} s and was killed; give --timeout "
                    "SECONDS, or a step that ends."
                )
            answer, _ = self._channel.receive()
        except ChannelClosed:
            raise self._died(doing) from None
        if not answer["ok"]:
            self._kill()
            raise self._failed(answer, do)
        return answer

    @property
    def _label(self) -> str:
        return self.program.label

    def _watch(self) -> None:
        if len(self.descendants()) >= MOST_PROCESSES:
            self._kill()
            raise SolutionFailed(
                f"{self._label} started more than {MOST_PROCESSES} processes and was killed with them; its step "
                f"`{self.program.step}` must not fork without end."
            )

    def _failed(self, answer: Message, do: str) -> MachineLacks | SolutionFailed | Misuse:
        said = answer["message"].rstrip(".")
        if answer["kind"] == "refused":
            return Misuse(f"{self._label}: {said}.")
        step = self.program.step
        at = "its import or setup" if do == "load" else f"its step `{step}` (call {answer['at']})"
        if answer["kind"] == "memory":
            return MachineLacks(
                f"{self._label}: {at} runs out of memory as it stands: {said}; free the device or make it smaller."
            )
        if answer["kind"] == "exit":
            return SolutionFailed(f"{self._label}: {at} ends the process: {said}; return from the step instead.")
        return SolutionFailed(f"{self._label}: {at} fails: {said}.{self._see()}")

    def _died(self, doing: str) -> SolutionFailed:
        """What to say of a process that ended by itself."""
        code = self._kill(_GRACE_SECONDS)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = f": {last_output_line(self._log)}" if self._log is not None else "."
        return SolutionFailed(f"{self._label} {how} during {doing}{said}{self._see()}")

    def _see(self) -> str:
        return f" Its output: {self._log}" if self._log is not None else ""

    def _kill(self, grace: float = 0.0) -> int:
        """Kill it, its group and what left the group; its exit code, its own if it ends within `grace` seconds."""
        leader, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if leader is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            if grace:
                leader.wait(grace)  # its socket closes before it is gone
        return kill_group(leader)

    def _file(self, name: str, ending: str) -> Path:
        """A new file's name in the runner's own folder, which goes when the runner is closed."""
        return Path(self._folder.name) / f"{name}-{next(self._numbers)}{ending}"


def spawn_server(channel: int, output: IO[bytes] | int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The process that serves the runner over the open socket `channel`; it leads a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "warpsmith.program.process.serve", str(channel)],
        pass_fds=(channel,),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=env,
        start_new_session=True,
    )


def kill_group(leader: subprocess.Popen[bytes]) -> int:
    """Kill a process that leads a group, the group, and what it started that left the group; its exit code."""
    process.signal_all(leader.pid, (), signal.SIGSTOP)  # so that nothing is started while we look
    strays = process.list_descendants([leader.pid], MOST_PROCESSES)
    process.signal_all(leader.pid, strays, signal.SIGKILL)
    return leader.wait()


def last_output_line(log: Path) -> str:
    """The last line with words of a program's output, cut where it is long."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return f"{lines[-1][:_LINE].rstrip('.')}." if lines else "it said nothing."


def _parse_values(step: Mapping[str, Any]) -> StepValues:
    return {
        path: TensorSummary.model_validate(leaf) if isinstance(leaf, dict) else float(leaf)
        for path, leaf in step.items()
    }


def _read_answer(path: Path) -> Any:  # noqa: ANN401 - JSON
    """What the program's process wrote, once."""
    found = json.loads(path.read_text())
    path.unlink()
    return found
