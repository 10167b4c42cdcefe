"""Sides as the grader sees them: implementations that run in worker processes of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pydantic import TypeAdapter, ValidationError

from warpsmith.core import gate_rules
from warpsmith.core.definition import Definition, Tolerance
from warpsmith.core.evaluation import Resources, Status
from warpsmith.core.port.check import KernelLaunch
from warpsmith.core.text import quote_foreign
from warpsmith.core.trust import Check
from warpsmith.errors import CompanionFailed, MachineFailed
from warpsmith.lab.workers import compiled_cache, memory_kills, process
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.lab.workers.scratch import remove_scratch
from warpsmith.lab.workers.zygote import WITNESS
from warpsmith.languages.base import Build

if TYPE_CHECKING:
    from warpsmith.lab.workers.worker_host import WorkerHost

_WATCH_SECONDS = 0.1
_RESOURCES = TypeAdapter(tuple[Resources, ...])
_LAUNCHES = TypeAdapter(tuple[KernelLaunch, ...])
_SPIN_SECONDS = 0.05


class SideFailed(Exception):
    """A side failed: its status, one sentence, and the name of the side (None: the solution)."""

    def __init__(self, status: Status, message: str, side: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.side = status, message, side


@dataclass(frozen=True)
class Limits:
    """Resources that a side may use."""

    seconds: float = gate_rules.MESSAGE_SECONDS
    """Wall time of one message; the first call includes loading and compiling."""
    memory_bytes: int = 0
    """Resident memory of the worker and its children; 0 means half of the machine's memory."""

    @property
    def memory(self) -> int:
        """Limit in bytes."""
        return self.memory_bytes or psutil.virtual_memory().total // gate_rules.MEMORY_DIVISOR


class Side:
    """One implementation in its worker. Every method raises SideFailed if the worker does not deliver."""

    def __init__(
        self, name: str, channel: Channel, pid: int, limits: Limits, folder: Path, host: WorkerHost, trusted: bool
    ) -> None:
        self.name, self.pid, self.trusted = name, pid, trusted
        self.runs_foreign_code = not trusted
        self._channel, self._limits, self._folder, self._host = channel, limits, folder, host
        self._alive, self._warming, self._paused = True, False, False
        self._report: Message | None = None
        self._compiled: Path | None = None
        self._kills, self._tensor_bytes, self._most_bytes = memory_kills.count_memory_kills(), 0, 0

    @cached_property  # Every stop and every continuation reads it.
    def isolation(self) -> tuple[Check, ...]:
        """Return the sandbox checks that the worker made before it loaded anything; empty for a trusted side."""
        return tuple(Check.model_validate(check) for check in self._start_report()["isolation"])

    def load(
        self,
        definition: Definition,
        source: Build | tuple[Path, str],
        arenas: list[Arena],
        device: str,
        language: str | None = None,
        recorded_for: str = "",
        threads: int = 0,
        counted: bool = False,
    ) -> None:
        """Make the worker open the arenas and load a built solution, or a peer from a definition's file.

        With `recorded_for`, an architecture, an interpreted solution's launches are recorded for its compiler.
        Sides start in parallel: `answer("load")` must follow, and waits until this side has loaded.
        """
        self._kills = memory_kills.count_memory_kills()
        self._tensor_bytes = sum(arena.size for arena in arenas) if device == "cpu" else 0
        handles, descriptors = zip(*(arena.handle() for arena in arenas), strict=True)
        if isinstance(source, Build):
            if source.artifact == source.source:  # it compiles at its first call; others have nothing to keep
                self._compiled = self._host.compiled_kernels(source)
                compiled_cache.restore_compiled(self._compiled, self._scratch)
            paths = {path: self._copy_for_worker(path) for path in (source.source, source.artifact)}
            load_request = {"language": language, "source": str(paths[source.source]),
                    "artifact": str(paths[source.artifact])}  # fmt: skip
        else:
            load_request = {"definition": str(self._definition(source[0])), "peer": source[1]}
        # The worker must not learn the tolerance.
        without_tolerance = definition.model_copy(update={"tolerance": Tolerance()})
        message = {
            "do": "load",
            "device": device,
            "threads": threads,
            "arenas": list(handles),
            "side": load_request,
            "recorded_for": recorded_for,
            "counted": counted,
            "definition": without_tolerance.model_dump(mode="json"),
        }
        self.tell(message, tuple(file for group in descriptors for file in group))

    def warm(self, device: str) -> None:
        """Make the worker create the device's context after it is sandboxed; the next message waits for that."""
        self._send({"do": "warm", "device": device})
        self._warming = True

    def pause(self) -> None:
        """Stop the worker and everything it started; return when none of its threads runs.

        Raises:
            SideFailed: it does not stop.
        """
        if not self._alive:
            return
        self._paused = True
        process.signal_all(self.pid, self._strays(), signal.SIGSTOP)
        if not process.await_stop(self.pid):
            raise SideFailed(Status.RUNTIME_ERROR, "the worker does not stop when it is signalled", self.name)

    def resume(self) -> None:
        """Let the worker and everything it started continue, if it was stopped."""
        if not self._alive or not self._paused:
            return
        self._paused = False
        process.signal_all(self.pid, self._strays(), signal.SIGCONT)

    def read(self, address: int, target: memoryview) -> None:
        """Copy the worker's memory at `address` into `target`, which must be writable and contiguous.

        Raises:
            SideFailed: not all of it can be read.
        """
        try:
            process.read_memory(self.pid, address, target)
        except OSError as error:
            message = (
                f"{target.nbytes} bytes of its result at {address:#x} cannot be read: {error.strerror or error}"
            )
            raise SideFailed(Status.RUNTIME_ERROR, message, self.name) from error

    def unreadable_reason(self) -> str | None:
        """Return why `read` cannot be used on this machine, or None if it can."""
        reason: str | None = self._start_report()["unreadable"]
        return reason

    def delivery_check(self, device: str) -> Check:
        """Return how its outputs are read when it answers, on `cpu` or `cuda`."""
        name = "outputs at the answer"
        if device != "cpu":
            return Check(
                name=name, ran=True, how="delivered inside the grader's time, against the reference's delivery"
            )
        reason = self.unreadable_reason()
        return Check(name=name, ran=reason is None, how=reason or "read out of the stopped worker")

    def descendants(self) -> list[int]:
        """List the living processes that the worker started."""
        if not self._alive:
            return []
        orphans = self._host.orphans(self.pid)
        adopted = [pid for pid in orphans if process.is_alive(pid)]
        return [*adopted, *process.list_descendants([self.pid, *orphans], gate_rules.MAX_PROCESSES)]

    def ask(self, message: Message, files: tuple[int, ...] = ()) -> Message:
        """Send the worker a message and return its answer."""
        self.tell(message, files)
        return self.answer(message["do"])

    def tell(self, message: Message, files: tuple[int, ...] = ()) -> None:
        """Send a message without waiting; exactly one `answer` must follow.

        Raises:
            SideFailed: the worker is not running.
        """
        if not self._alive:
            raise SideFailed(Status.RUNTIME_ERROR, f"{self.name} is not running", self.name)
        self._start_report()
        self.resume()
        if self._warming:
            self._warming = False
            self._receive_of_start("the device's context")
        self._send(message, files)

    def answer(self, doing: str, *, at_once: bool = False) -> Message:
        """Wait for the answer, watching time, memory and processes.

        Args:
            doing: the step to name if the time limit ends it.
            at_once: spin before sleeping, since the time to wake up would be measured.

        Raises:
            SideFailed: the worker dies, exceeds a limit or reports a failure.
        """
        if at_once:
            self._channel.spin(_SPIN_SECONDS)
        answer = self._receive(doing, self._limits.seconds)
        if not answer.get("ok"):
            raise self._failure_of_answer(answer)
        return answer

    def fileno(self) -> int:
        """Return the number of its channel, for `select` over several sides."""
        return self._channel.fileno()

    def resources(self) -> tuple[Resources, ...]:
        """Return the compiler's report, which the worker sends after the calls."""
        report = self.ask({"do": "resources"}).get("resources")
        try:
            return _RESOURCES.validate_python(report)
        except ValidationError as error:
            raise SideFailed(
                Status.RUNTIME_ERROR, "the worker does not report what it compiled", self.name
            ) from error

    def is_running(self) -> bool:
        """Return whether its worker was not ended yet."""
        return self._alive

    def launches(self) -> tuple[KernelLaunch, ...]:
        """Return the kernels that it launched since the last call of this method, as the worker recorded them."""
        try:
            return _LAUNCHES.validate_python(self.ask({"do": "launches"}).get("launches"))
        except ValidationError as error:
            raise SideFailed(
                Status.RUNTIME_ERROR, "the worker does not report what it launched", self.name
            ) from error

    def kill(self) -> None:
        """Kill the worker with its process group and keep what it compiled; `close` must follow, and waits."""
        if not self._alive:
            return
        with contextlib.suppress(SideFailed, MachineFailed):
            self.pause()  # The files must not change while they are copied.
            self._keep_compiled()
        process.signal_all(self.pid, (), signal.SIGKILL)

    def close(self) -> int:
        """Kill the worker and everything it started; return its wait status."""
        if not self._alive:
            return 0
        self._alive = False
        self._channel.close()
        status = self._host.reap(self.pid)
        self._keep_compiled()
        remove_scratch(self._folder / "scratch")
        return status

    def leave(self, code: int) -> int | None:
        """Have the worker end as a program does, by the C library's `exit`, and close it.

        Returns:
            Its exit code, or the negative number of the signal that ended it; None if it does not end within a
            second.
        """
        self.resume()
        self.tell({"do": "leave", "code": code})
        deadline = time.monotonic() + _LEAVE_SECONDS
        while time.monotonic() < deadline and (stat := process.read_stat(str(self.pid))) and stat.state != "Z":
            time.sleep(_LEAVE_STEP)
        ended = (stat := process.read_stat(str(self.pid))) is None or stat.state == "Z"
        status = self.close()
        return os.waitstatus_to_exitcode(status) if ended else None

    def hang_up(self) -> None:
        """Close the connection; the worker ends with its host."""
        self._alive = False
        self._channel.close()

    def _send(self, message: Message, files: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, files)
        except ChannelClosed:
            raise self._failure_of_death() from None

    def _receive_of_start(self, doing: str) -> Message:
        """Wait for an answer from before any code of a version ran: what fails there is the machine's.

        Raises:
            CompanionFailed: it does not come, or reports a failure.
        """
        try:
            answer = self._receive(doing, max(self._limits.seconds, _START_SECONDS))
            if answer.get("ok") is False:
                raise self._failure_of_answer(answer)
        except SideFailed as failure:
            raise CompanionFailed(f"A worker could not be started: {failure.message}.") from failure
        return answer

    def _receive(self, doing: str, seconds: float) -> Message:
        deadline = time.monotonic() + seconds
        try:
            if not self._channel.wait(deadline, _WATCH_SECONDS, self.check_limits):
                message = f"{doing} did not end within {seconds:g} s and was killed"
                raise self._kill_as_failed(Status.TIMEOUT, message)
            return self._channel.receive()[0]
        except ChannelClosed:
            raise self._failure_of_death() from None

    def _start_report(self) -> Message:
        """Return the worker's report after it was sandboxed, and whether its memory can be read; waits once."""
        if self._report is None:
            report = self._receive_of_start("starting")
            self._report = report | {"unreadable": self._cannot_read(report["witness"])}
        return self._report

    def _cannot_read(self, witness: int) -> str | None:
        content = bytearray(len(WITNESS))
        try:
            process.read_memory(self.pid, witness, memoryview(content))
        except OSError as error:
            return f"process_vm_readv: {error.strerror or error}; allow processes of the same user to be traced"
        return None if content == WITNESS else "process_vm_readv returns wrong bytes"

    @property
    def _scratch(self) -> Path:
        """Folder that it may write to; the caches of its kernels lie in it."""
        return (self._folder / "scratch").resolve()

    def _keep_compiled(self) -> None:
        """Save what the worker compiled for the next worker that loads the same source; does so once."""
        if self._compiled is not None:
            compiled_cache.save_compiled(self._scratch, self._compiled)
            self._compiled = None

    def _copy_for_worker(self, path: Path) -> Path:
        """Copy a file into the scratch folder, since the worker cannot read it in its place."""
        return Path(shutil.copy(path, self._folder / "scratch"))

    def _definition(self, path: Path) -> Path:
        """Return the path of a definition's file as the worker sees it.

        An untrusted worker gets copies of the Python files.
        """
        if self.trusted:
            return path
        folder = self._folder / "scratch" / path.parent.name
        folder.mkdir(exist_ok=True)
        for file in path.parent.glob("*.py"):
            shutil.copy(file, folder)
        return folder / path.name

    def _strays(self) -> list[int]:
        """List processes that left its process group, on a machine where nothing prevents that."""
        if not self.runs_foreign_code or any(
            check.name == "process group" and check.ran for check in self.isolation
        ):
            return []
        stats = ((pid, process.read_stat(str(pid))) for pid in self.descendants())
        return [pid for pid, stat in stats if stat and stat.group != self.pid]

    def check_limits(self) -> None:
        """Check its processes and memory; raises SideFailed, and kills it, beyond a limit."""
        pids = self.descendants()
        if len(pids) > gate_rules.MAX_PROCESSES and self.runs_foreign_code:
            message = f"it started more than {gate_rules.MAX_PROCESSES} processes and was killed"
            raise self._kill_as_failed(Status.RUNTIME_ERROR, message)
        everything = (self.pid, *pids)
        used = sum(map(process.private_bytes, everything))
        if used > self._limits.memory:  # So far, memory that forked processes share was counted once per process.
            used = sum(map(process.proportional_bytes, everything))
        shared = max(map(process.resident_shared_bytes, everything)) - self._tensor_bytes
        self._most_bytes = max(self._most_bytes, used + max(0, shared))
        if used > self._limits.memory:
            message = f"it used {used / 2**30:.1f} GiB, over {self._limits.memory / 2**30:.1f} GiB"
            raise self._kill_as_failed(Status.OUT_OF_MEMORY, message)

    def _kill_as_failed(self, status: Status, message: str) -> SideFailed:
        """Kill the worker with its process group at once and return the failure."""
        process.signal_all(self.pid, (), signal.SIGKILL)
        self.close()
        return SideFailed(status, message, self.name)

    def _failure_of_death(self) -> SideFailed | MachineFailed:
        """Return how the worker ended: by its own fault, unless the kernel killed it for want of memory that it
        did not take."""
        status = self.close()
        was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if was_killed and self.runs_foreign_code and memory_kills.count_memory_kills() > self._kills:
            amount = f"while {self.name} held {self._most_bytes / 2**30:.1f} GiB"
            allowed = memory_kills.OWN_BYTES + memory_kills.TENSORS * self._tensor_bytes
            if self._most_bytes <= allowed:
                text = "The kernel killed a worker for want of memory"
                return CompanionFailed(f"{text}, {amount}. Judge again when the machine has more of it.")
            return SideFailed(
                Status.OUT_OF_MEMORY, f"the kernel killed it for want of memory, {amount}", self.name
            )
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            end = f"was killed by {signal.Signals(os.WTERMSIG(status)).name}"
        elif os.WIFEXITED(status):
            end = f"exited with code {os.WEXITSTATUS(status)}"
        else:
            end = "was killed"
        tail = self._tail()
        output = f"; its last output was: {self._quote(tail)}" if tail else ""
        return SideFailed(Status.RUNTIME_ERROR, f"the worker {end}{output}", self.name)

    def _failure_of_answer(self, answer: dict[str, Any]) -> SideFailed:
        name, text = str(answer.get("error")), str(answer.get("message"))
        memory = name in ("OutOfMemoryError", "MemoryError") or "out of memory" in text.lower()
        status = Status.OUT_OF_MEMORY if memory else Status.RUNTIME_ERROR
        return SideFailed(status, self._quote(f"{name}: {text}"[:600]), self.name)

    def _quote(self, text: str) -> str:
        """Mark what a version printed as data; the project's own code is trusted."""
        return quote_foreign(text) if self.runs_foreign_code else text

    def _tail(self) -> str:
        path = self._folder / "output.txt"
        with contextlib.suppress(OSError), path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 2000))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return "".join(c for c in " ".join(lines[-2:]) if c.isprintable())[:300]
        return ""


_START_SECONDS = 180.0
"""Least seconds for the start of a worker and of its device: drivers take their time on a busy machine."""
_LEAVE_SECONDS, _LEAVE_STEP = 1.0, 0.002
"""Seconds that the end of a worker by itself may take, and between two looks at it."""
