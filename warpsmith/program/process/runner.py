"""A program in a process of its own: its steps are run and timed from outside."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from warpsmith import files
from warpsmith.errors import MachineLacks, Misuse, SolutionFailed, TimedOut
from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.packages import require_torch
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.models import Trace
from warpsmith.program.models import ProgramFacts, StepsRun, StepValues, TensorSummary
from warpsmith.program.process.program import Program
from warpsmith.temporary import TemporaryFolder

MOST_PROCESSES = 512
"""Number of processes at which a program is killed, because it forks without end."""

TIMEOUT = 600.0
"""Default limit in seconds for the start and for each request."""

WATCH_SECONDS = 0.5
"""Seconds between looks at a program's processes while it works."""

_GRACE_SECONDS = 1.0
_STDERR = 2
_TAIL, _LINE = 4000, 300


_TASKS = {
    "compiled_regions": "the compilation and trace of its step",
    "facts": "the steps that are observed",
    "graph_capture": "the capture of its step",
    "graph_modules": "the capture of its modules",
    "graph_observe": "the steps that are watched",
    "line_observe": "the steps that are watched line by line",
    "operators": "the steps whose operators are watched",
    "region_hits": "the steps whose calls are counted",
    "region_values": "the steps whose values are observed",
    "transfer": "the audit of its kernel",
}
"""Words for a task where it fails; others look at the program without a step."""


class Runner:
    """One program in its process, as a context manager that kills the process and everything it started.

    Methods that make the program do something raise these errors.

    Raises:
        Misuse: it has no such step, or that needs arguments.
        SolutionFailed: it fails, exits or dies.
        MachineLacks: there is no PyTorch, or it runs out of memory.
        TimedOut: it does not end in time.
    """

    runs_commands = False
    """True for the class that runs shell commands."""

    eager_random = False
    """True if compiled code of a command draws the random numbers of eager code; set it before the start."""

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
        """Prepare the runner; `start` starts the program.

        Args:
            program: a file or module with a step.
            original: files of the program, and copies whose content is run instead.
            seed: seed of random, numpy, torch and hashes.
            timeout: seconds for each request.
            env: additions to this process's environment.
            log: file for the program's output, by default stderr.

        Raises:
            Misuse: the program is a shell command.
        """
        if program.command is not None and not self.runs_commands:
            raise Misuse("A shell command has no step to call; give a Python file or module with --step.")
        self.program = program
        self._original = {str(path): str(copy) for path, copy in (original or {}).items()}
        self._seed, self._timeout, self._env, self._log = seed, timeout, dict(env or {}), log
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._numbers = itertools.count()
        self._folder = TemporaryFolder("program")

    def start(self) -> ProgramFacts:
        """Import the program, call its setup, and return its facts before the first step.

        The program is killed when the thread that started it ends.
        """
        require_torch("The program")
        self._channel, remote = Channel.pair()
        output = self._open_log()
        with remote:
            env = {**os.environ, "PYTHONHASHSEED": str(self._seed), **self._env}
            self._process = spawn_server(remote.fileno(), output, env)
        if not isinstance(output, int):
            output.close()
        program = self.program
        self._request(
            "load", "its start", path=str(program.path), folder=str(program.folder), module=program.module,
            step=program.step, setup=program.setup, args=program.args, label=program.label,
            original=self._original, seed=self._seed,
        )  # fmt: skip
        return self.facts()

    def observe(self) -> ProgramFacts:
        """Run three steps under the profiler, and return the facts with one observed step."""
        return self.observe_ranks()[0]

    def facts(self) -> ProgramFacts:
        """Return the facts of the program as it is now."""
        return self._facts(observe=False)[0]

    def observe_ranks(self) -> list[ProgramFacts]:
        """Run steps as `observe` does, and return the facts of each rank."""
        return self._facts(observe=True)

    def run(self, count: int, *, values: bool = True, keep: bool = False) -> StepsRun:
        """Run `count` steps and wait for the device.

        With `keep` their tensors are saved whole, in a file that exists until the runner is closed. Without
        `values` their values are not read, which saves a pass over large tensors.
        """
        self._request("ready", "preparing steps")
        begin = time.perf_counter()
        ran = self._request("run", f"{count} steps", count=count, values=values, keep=keep)
        seconds = time.perf_counter() - begin
        saved = self._file("saved", ".pt") if keep else None
        first, *others = self._summarize_values(saved) if values or keep else ((),)
        return StepsRun(
            first=ran["first"], count=count, seconds=seconds, values=first, others=tuple(others),
            saved=tuple(map(str, self._rank_files(saved))) if saved else (),
        )  # fmt: skip

    def state(self) -> dict[str, TensorSummary]:
        """Summarize parameters and buffers of its modules, by name."""
        return {name: TensorSummary.model_validate(fields) for name, fields in self.call("state").items()}

    def peak_bytes(self) -> int:
        """Return the peak of bytes on the device since the last `run` began; without a GPU, of resident bytes."""
        return int(self._request("peak", "reading its memory")["bytes"])

    def trace(self, steps: int, folder: Path) -> Trace:
        """Run one step and `steps` more under torch.profiler, and write the Chrome trace to the folder.

        Raises:
            MissingInput: the steps do nothing in PyTorch.
        """
        return traces.analyze_trace_file(self.write_traces(steps, folder)[0])

    def write_traces(self, steps: int, folder: Path) -> list[Path]:
        """Run steps as `trace` does, and write the Chrome trace of each rank to the folder."""
        temporary = self._file("trace", ".json.gz")
        self._request("trace", f"{1 + steps} steps under the profiler", steps=steps, file=str(temporary))
        targets = []
        for rank, path in enumerate(self._rank_files(temporary)):
            targets.append(folder / traces.rank_file(rank))
            files.write_file(targets[-1], path.read_bytes())
            path.unlink()
        return targets

    def call(self, task: str, **args: object) -> Any:  # noqa: ANN401 - JSON
        """Run a module of `warpsmith.program.tasks` in the program, with JSON arguments; return its answer."""
        return self.call_ranks(task, **args)[0]

    def call_ranks(self, task: str, **args: object) -> list[Any]:
        """Run a module of `warpsmith.program.tasks` in every rank of the program, and return their answers."""
        answer = self._file(task, ".json")
        doing = _TASKS.get(task, "a look at its modules")
        self._request("task", doing, task=task, args=args, file=str(answer))
        return [_read_answer(path) for path in self._rank_files(answer)]

    def descendants(self) -> list[int]:
        """List the live processes that it started."""
        return [] if self._process is None else process.list_descendants([self._process.pid], MOST_PROCESSES)

    def close(self) -> None:
        """Kill the program and everything that it started."""
        self._kill()
        self._folder.cleanup()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_log(self) -> IO[bytes] | int:
        """Open the file for the program's output; without one, return stderr."""
        if self._log is None:
            return _STDERR
        self._log.parent.mkdir(parents=True, exist_ok=True)
        return self._log.open("wb")

    def _facts(self, *, observe: bool) -> list[ProgramFacts]:
        every = self.call_ranks("facts", observe=observe)
        processes = len(self.descendants())
        return [ProgramFacts.model_validate({**fields, "processes": processes}) for fields in every]

    def _summarize_values(self, saved: Path | None) -> list[tuple[StepValues, ...]]:
        """Return the values of the last steps of each rank; `saved`: and save them whole."""
        answer = self._file("values", ".json")
        path = str(saved) if saved else None
        self._request("values", "summarizing the values of the steps", file=str(answer), saved=path)
        return [tuple(map(_parse_values, _read_answer(path))) for path in self._rank_files(answer)]

    def _rank_files(self, path: Path) -> list[Path]:
        """List the files that the ranks answer in, if the first rank answers in `path`."""
        return [path]

    def _request(self, do: str, doing: str, **more: object) -> Message:
        """Send a request and wait for its answer, within the time limit and the limit on processes."""
        if self._channel is None or self._process is None:
            raise RuntimeError("the runner is not started, or its program has ended")
        try:
            self._send({"do": do, **more})
            answer = self._await_answer(doing)
        except ChannelClosed:
            raise self._exit_error(doing) from None
        if not answer["ok"]:
            self._kill()
            raise self._request_error(answer, do)
        return answer

    def _send(self, message: Message) -> None:
        if self._channel is not None:
            self._channel.send(message)

    def _await_answer(self, doing: str) -> Message:
        """Wait for the answer to a request."""
        if self._channel is None:
            raise ChannelClosed
        if not self._channel.wait(time.monotonic() + self._timeout, WATCH_SECONDS, self._watch):
            self._kill()
            raise TimedOut(
                f"{self._label}: {doing} took more than {self._timeout:g} s, so the program was killed; give "
                "--timeout SECONDS, or a step that ends."
            )
        return self._channel.receive()[0]

    @property
    def _label(self) -> str:
        return self.program.label

    def _watch(self) -> None:
        """Kill a program that forks without end."""
        if len(self.descendants()) >= MOST_PROCESSES:
            self._kill()
            raise SolutionFailed(
                f"{self._label} started more than {MOST_PROCESSES} processes and was killed with them; its step "
                f"`{self.program.step}` must not fork without end."
            )

    def _request_error(self, answer: Message, do: str) -> MachineLacks | SolutionFailed | Misuse:
        message = answer["message"].rstrip(".")
        if answer["kind"] == "refused":
            return Misuse(f"{self._label}: {message}.")
        step = self.program.step
        stage = "its import or setup" if do == "load" else f"its step `{step}` (call {answer['at']})"
        if answer["kind"] == "memory":
            return MachineLacks(
                f"{self._label}: {stage} runs out of memory as it stands: {message}; free the device or make it "
                "smaller."
            )
        if answer["kind"] == "exit":
            return SolutionFailed(
                f"{self._label}: {stage} ends the process: {message}; return from the step instead."
            )
        return SolutionFailed(f"{self._label}: {stage} fails: {message}.{self._log_hint()}")

    def _exit_error(self, doing: str) -> SolutionFailed | MachineLacks | Misuse:
        """Return the error for a process that ended by itself."""
        code = self._kill(_GRACE_SECONDS)
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        output = f": {last_output_line(self._log)}" if self._log is not None else "."
        return SolutionFailed(f"{self._label} {end} during {doing}{output}{self._log_hint()}")

    def _log_hint(self) -> str:
        return f" Its output: {self._log}" if self._log is not None else ""

    def _kill(self, grace: float = 0.0) -> int:
        """Kill the process, its group and strays; return its exit code.

        Within `grace` seconds it may end by itself, with a code of its own.
        """
        leader, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if leader is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            if grace:
                leader.wait(grace)  # its socket closes before the process ends
        return kill_group(leader)

    def _file(self, name: str, ending: str) -> Path:
        """Return a new path in the runner's own folder, which is removed when the runner is closed."""
        return Path(self._folder.name) / f"{name}-{next(self._numbers)}{ending}"


def spawn_server(channel: int, output: IO[bytes] | int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process that serves the runner over the open socket `channel`, in a group of its own."""
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
    """Kill a process that leads a group, the group and descendants outside it; return its exit code."""
    process.signal_all(leader.pid, (), signal.SIGSTOP)  # so that nothing starts during the search
    strays = process.list_descendants([leader.pid], MOST_PROCESSES)
    process.signal_all(leader.pid, strays, signal.SIGKILL)
    return leader.wait()


def last_output_line(log: Path) -> str:
    """Return the last line of a program's output that is not empty, cut to a limit."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return f"{lines[-1][:_LINE].rstrip('.')}." if lines else "it printed nothing."


def _parse_values(step: Mapping[str, Any]) -> StepValues:
    return {
        path: TensorSummary.model_validate(leaf) if isinstance(leaf, dict) else float(leaf)
        for path, leaf in step.items()
    }


def _read_answer(path: Path) -> Any:  # noqa: ANN401 - JSON
    """Read an answer of the program's process and remove its file."""
    answer = json.loads(path.read_text())
    path.unlink()
    return answer
