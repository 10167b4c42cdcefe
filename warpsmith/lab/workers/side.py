"""Sides: implementations that run in worker processes of their own, as the grader sees them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
from pydantic import TypeAdapter, ValidationError

from warpsmith import files
from warpsmith.core.definition import Definition, Tolerance
from warpsmith.core.evaluation import Resources, Status
from warpsmith.core.trust import Check
from warpsmith.errors import MachineFailed
from warpsmith.lab.sandbox import walls
from warpsmith.lab.workers import compiled_cache, process
from warpsmith.lab.workers.arena import Arena
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.lab.workers.zygote import WITNESS
from warpsmith.languages.base import Build

_START_SECONDS = 120.0
_WATCH_SECONDS = 0.1
_RESOURCES = TypeAdapter(tuple[Resources, ...])
_SPIN_SECONDS = 0.05
_PRELOADED = ("torch", "warpsmith.lab.workers.worker")
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_KEEP_ALL = 2**31 - 1

STEADY_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(_KEEP_ALL),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
}
"""Environment in which the C library keeps what is freed, in huge pages where the kernel has them."""

_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "CXX", "CC", "LD_LIBRARY_PATH", "TMPDIR", "USER", "VIRTUAL_ENV")
_PASSED_PREFIXES = ("CUDA", "NVIDIA", "TRITON", "OMP_", "NCCL_", "TORCH_SYMM", "NVSHMEM", "TORCHINDUCTOR")


class SideFailed(Exception):
    """A side did not do what it was told: the status, one sentence, and which side (None: the solution)."""

    def __init__(self, status: Status, message: str, side: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.side = status, message, side


@dataclass(frozen=True)
class Limits:
    """What a side may take."""

    seconds: float = 60.0
    """Wall time of one message, loading and compiling at the first call included."""
    memory_bytes: int = 0
    """Resident memory of the worker and its children; 0: half of the machine's."""

    @property
    def memory(self) -> int:
        """The limit in bytes."""
        return self.memory_bytes or psutil.virtual_memory().total // 2


class WorkerHost:
    """Where workers come from: one zygote process, and everything it forked."""

    def __init__(self, device: str, interpret: bool = False, hidden: Sequence[Path] = ()) -> None:
        """`hidden`: folders that no candidate may read, even where they lie among the system's or Python's."""
        keep_freed_memory()
        self._channel, theirs = Channel.pair()
        self._folder = tempfile.TemporaryDirectory(prefix="warpsmith-")
        preload = [*_PRELOADED, *(["triton"] if device != "cpu" or interpret else [])]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warpsmith.lab.workers.zygote", str(theirs.fileno()), *preload],
                pass_fds=(theirs.fileno(),),
                env=_environment(interpret),
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is for the grader, which then ends all that it started
            )
        self._ready = False
        self.compiled = Path(self._folder.name) / "compiled"
        """Kernels that a source's own worker compiled, by the source's hash: the same source finds them again."""
        self._device, self._hidden = device, [str(path) for path in (Path(self._folder.name), *hidden)]
        self._workers: set[int] = set()
        self._idle: list[Side] = []

    def side(self, name: str, limits: Limits, trusted: bool = False) -> Side:
        """A new worker, from the pool where one is there; it has loaded nothing yet. Only the project's own
        code is trusted: then nothing shuts it in."""
        found = next((side for side in self._idle if side.trusted is trusted), None)
        if found is None:
            return self._start(name, limits, trusted)
        self._idle.remove(found)
        found.name, found._limits = name, limits
        return found

    def restock(self, count: int, trusted: int = 0) -> None:
        """Have so many idle workers; on a GPU they make their context without being waited for."""
        for kind, wanted in ((False, count), (True, trusted)):
            for _ in range(wanted - sum(side.trusted is kind for side in self._idle)):
                side = self._start("idle", Limits(), kind)
                self._idle.append(side)
                if self._device != "cpu":
                    side.warm(self._device)

    @property
    def pids(self) -> list[int]:
        """The workers'."""
        return sorted(self._workers)

    def reap(self, pid: int) -> int:
        """Kill a worker with everything it started; its wait status."""
        self._workers.discard(pid)
        self._send({"reap": pid})
        return int(self._answer()["status"])

    def orphans(self, pid: int) -> list[int]:
        """What the zygote adopted that may be of this worker: of its process group, or of no worker's."""
        others = self._workers - {pid}
        adopted = (child for child in process.list_children(self._process.pid) if child not in self._workers)
        return [
            child for child in adopted if (found := process.read_stat(str(child))) and found.group not in others
        ]

    def _start(self, name: str, limits: Limits, trusted: bool) -> Side:
        self._await()
        ours, theirs = Channel.pair()
        folder = Path(tempfile.mkdtemp(prefix=f"{name.replace('/', '-')}-", dir=self._folder.name))
        scratch, log = folder / "scratch", folder / "output.txt"  # a worker cannot replace its log by a link
        scratch.mkdir()
        message = {"spawn": str(scratch), "trusted": trusted, "hidden": self._hidden}
        with theirs, log.open("wb") as output:
            self._send(message, (theirs.fileno(), output.fileno()))
            pid = self._answer()["pid"]
        self._workers.add(pid)
        return Side(name, ours, pid, limits, folder, self, trusted)

    def close(self) -> None:
        """End everything that was started."""
        self._channel.close()
        for side in self._idle:
            side.hang_up()
        self._idle.clear()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> WorkerHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await(self) -> None:
        if not self._ready:
            self._answer()
            self._ready = True

    def _send(self, message: Message, files: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, files)
        except ChannelClosed as error:
            raise MachineFailed("The worker host died: something killed it.") from error

    def _answer(self) -> Message:
        if not self._channel.wait(time.monotonic() + _START_SECONDS, 1.0, lambda: None):
            raise MachineFailed("The worker host does not answer; is the machine out of memory?")
        try:
            return self._channel.receive()[0]
        except ChannelClosed as error:
            raise MachineFailed(
                "The worker host died; is torch installed (`pip install warpsmith[lab]`)?"
            ) from error


class Side:
    """One implementation in its worker. Every method raises Failed when the worker does not deliver."""

    def __init__(
        self, name: str, channel: Channel, pid: int, limits: Limits, folder: Path, host: WorkerHost, trusted: bool
    ) -> None:
        self.name, self.pid, self.trusted = name, pid, trusted
        self._channel, self._limits, self._folder, self._host = channel, limits, folder, host
        self._alive, self._warming, self._paused = True, False, False
        self._said: Message | None = None
        self._compiled: Path | None = None

    @cached_property  # looked at whenever it is stopped or goes on
    def isolation(self) -> tuple[Check, ...]:
        """What shuts it in, as it found before it loaded anything; nothing for a trusted side."""
        return tuple(Check.model_validate(check) for check in self._entered()["isolation"])

    def load(
        self,
        definition: Definition,
        source: Build | tuple[Path, str],
        arenas: list[Arena],
        device: str,
        language: str | None = None,
        threads: int = 0,
    ) -> None:
        """Have it open the arenas and load a built solution, or a peer of a definition's file.

        Sides start up together: `answer("load")` must follow, and waits until this one has.
        """
        handles, opened = zip(*(arena.handle() for arena in arenas), strict=True)
        if isinstance(source, Build):
            self._compiled = self._host.compiled / files.file_sha256(source.source)
            compiled_cache.restore_compiled(self._compiled, self._cache)
            paths = {path: self._given(path) for path in (source.source, source.artifact)}
            what = {"language": language, "source": str(paths[source.source]),
                    "artifact": str(paths[source.artifact])}  # fmt: skip
        else:
            what = {"definition": str(self._definition(source[0])), "peer": source[1]}
        blind = definition.model_copy(update={"tolerance": Tolerance()})  # how near is near enough stays here
        message = {"do": "load", "device": device, "threads": threads, "arenas": list(handles), "side": what,
                   "definition": blind.model_dump(mode="json")}  # fmt: skip
        self.tell(message, tuple(file for group in opened for file in group))

    def warm(self, device: str) -> None:
        """Have it make the device's context as soon as it is shut in; the next message waits for that."""
        self._send({"do": "warm", "device": device})
        self._warming = True

    def pause(self) -> None:
        """Stop it and everything it started; returns when no thread of it runs.

        Raises:
            Failed: it does not stop.
        """
        if not self._alive:
            return
        self._paused = True
        process.signal_all(self.pid, self._strays(), signal.SIGSTOP)
        if not process.await_stop(self.pid):
            raise SideFailed(Status.RUNTIME_ERROR, "the worker does not stop when it is told to", self.name)

    def resume(self) -> None:
        """Let it and everything it started run on, if it was stopped."""
        if not self._alive or not self._paused:
            return
        self._paused = False
        process.signal_all(self.pid, self._strays(), signal.SIGCONT)

    def read(self, address: int, target: memoryview) -> None:
        """Copy the worker's memory at `address` into `target`, writable and contiguous.

        Raises:
            Failed: not all of it can be read.
        """
        try:
            process.read_memory(self.pid, address, target)
        except OSError as error:
            what = f"{target.nbytes} bytes of its result at {address:#x} cannot be read: {error.strerror or error}"
            raise SideFailed(Status.RUNTIME_ERROR, what, self.name) from error

    def readable(self) -> str | None:
        """Why `read` cannot be used on this machine; None: it can."""
        why: str | None = self._entered()["unreadable"]
        return why

    def descendants(self) -> list[int]:
        """Living processes that it started."""
        if not self._alive:
            return []
        orphans = self._host.orphans(self.pid)
        mine = [pid for pid in orphans if process.is_alive(pid)]
        return [*mine, *process.list_descendants([self.pid, *orphans], walls.MOST_PROCESSES)]

    def ask(self, message: Message, files: tuple[int, ...] = ()) -> Message:
        """Tell the worker something and return its answer."""
        self.tell(message, files)
        return self.answer(message["do"])

    def tell(self, message: Message, files: tuple[int, ...] = ()) -> None:
        """Send without waiting; exactly one `answer` must follow. Raises Failed where it is not running."""
        if not self._alive:
            raise SideFailed(Status.RUNTIME_ERROR, f"{self.name} is not running", self.name)
        self._entered()
        self.resume()
        if self._warming:
            self._warming = False
            self.answer("warm")
        self._send(message, files)

    def answer(self, doing: str, *, at_once: bool = False) -> Message:
        """Wait for the answer, watching time, memory and processes; `at_once`: without sleeping at first, since
        waking up would be timed. Raises Failed where it dies, takes too much or says that it failed."""
        if at_once:
            self._channel.spin(_SPIN_SECONDS)
        answer = self._receive(doing)
        if not answer.get("ok"):
            raise self._refused(answer)
        return answer

    def resources(self) -> tuple[Resources, ...]:
        """The compiler's report, as the worker tells it after the calls."""
        said = self.ask({"do": "resources"}).get("resources")
        try:
            return _RESOURCES.validate_python(said)
        except ValidationError as error:
            raise SideFailed(
                Status.RUNTIME_ERROR, "the worker does not say what was compiled", self.name
            ) from error

    def kill(self) -> None:
        """Have it die with what is in its group, and keep what it compiled; `close` must follow, and waits."""
        if not self._alive:
            return
        with contextlib.suppress(SideFailed, MachineFailed):
            self.pause()  # what is copied must not change meanwhile
            self._keep_compiled()
        process.signal_all(self.pid, (), signal.SIGKILL)

    def close(self) -> int:
        """Kill the worker and whatever it started; its wait status."""
        if not self._alive:
            return 0
        self._alive = False
        self._channel.close()
        status = self._host.reap(self.pid)
        self._keep_compiled()
        files.clear(self._folder / "scratch")
        return status

    def hang_up(self) -> None:
        """Close the connection; the worker ends with its host."""
        self._alive = False
        self._channel.close()

    def _send(self, message: Message, files: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, files)
        except ChannelClosed:
            raise self._died() from None

    def _receive(self, doing: str) -> Message:
        deadline = time.monotonic() + self._limits.seconds
        try:
            if not self._channel.wait(deadline, _WATCH_SECONDS, self._watch):
                late = f"{doing} did not end within {self._limits.seconds:g} s and was killed"
                raise self._killed(Status.TIMEOUT, late)
            return self._channel.receive()[0]
        except ChannelClosed:
            raise self._died() from None

    def _entered(self) -> Message:
        """What it said when it had been shut in, waited for once; and whether its memory can be read."""
        if self._said is None:
            try:
                said = self._receive("starting")
            except SideFailed as failure:
                raise MachineFailed(f"A worker could not be started: {failure.message}.") from failure
            self._said = said | {"unreadable": self._cannot_read(said["witness"])}
        return self._said

    def _cannot_read(self, witness: int) -> str | None:
        found = bytearray(len(WITNESS))
        try:
            process.read_memory(self.pid, witness, memoryview(found))
        except OSError as error:
            return f"process_vm_readv: {error.strerror or error}; allow tracing of processes of the same user"
        return None if found == WITNESS else "process_vm_readv gives other bytes than are there"

    @property
    def _cache(self) -> Path:
        """Where its kernels are compiled to."""
        return (self._folder / "scratch").resolve() / compiled_cache.FOLDER

    def _keep_compiled(self) -> None:
        """Keep what it compiled for the next worker that loads its source, once."""
        if self._compiled is not None:
            compiled_cache.save_compiled(self._cache, self._compiled)
            self._compiled = None

    def _given(self, path: Path) -> Path:
        """A copy for the worker, which cannot read where it lies."""
        return Path(shutil.copy(path, self._folder / "scratch"))

    def _definition(self, path: Path) -> Path:
        """A definition's file as the worker sees it: one that is not trusted gets copies of the Python files."""
        if self.trusted:
            return path
        folder = self._folder / "scratch" / path.parent.name
        folder.mkdir(exist_ok=True)
        for file in path.parent.glob("*.py"):
            shutil.copy(file, folder)
        return folder / path.name

    def _strays(self) -> list[int]:
        """What is no longer in its process group, where nothing holds it there."""
        if self.trusted or any(check.name == "process group" and check.ran for check in self.isolation):
            return []
        found = ((pid, process.read_stat(str(pid))) for pid in self.descendants())
        return [pid for pid, stat in found if stat and stat.group != self.pid]

    def _watch(self) -> None:
        pids = self.descendants()
        if len(pids) > walls.MOST_PROCESSES and not self.trusted:
            many = f"it started more than {walls.MOST_PROCESSES} processes and was killed"
            raise self._killed(Status.RUNTIME_ERROR, many)
        everything = (self.pid, *pids)
        used = sum(map(process.private_bytes, everything))
        if used > self._limits.memory:  # what forked processes share counts once a process so far
            used = sum(map(process.proportional_bytes, everything))
        if used > self._limits.memory:
            much = f"it took {used / 2**30:.1f} GiB, over {self._limits.memory / 2**30:.1f} GiB"
            raise self._killed(Status.OUT_OF_MEMORY, much)

    def _killed(self, status: Status, why: str) -> SideFailed:
        """End it at once, all that is in its group together."""
        process.signal_all(self.pid, (), signal.SIGKILL)
        self.close()
        return SideFailed(status, why, self.name)

    def _died(self) -> SideFailed:
        status = self.close()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            how = f"was killed by {signal.Signals(os.WTERMSIG(status)).name}"
        elif os.WIFEXITED(status):
            how = f"exited with code {os.WEXITSTATUS(status)}"
        else:
            how = "was killed"
        tail = self._tail()
        said = f"; it last said: {tail}" if tail else ""
        return SideFailed(Status.RUNTIME_ERROR, f"the worker {how}{said}", self.name)

    def _refused(self, answer: dict[str, Any]) -> SideFailed:
        name, text = str(answer.get("error")), str(answer.get("message"))
        memory = name in ("OutOfMemoryError", "MemoryError") or "out of memory" in text.lower()
        status = Status.OUT_OF_MEMORY if memory else Status.RUNTIME_ERROR
        return SideFailed(status, f"{name}: {text}"[:600], self.name)

    def _tail(self) -> str:
        path = self._folder / "output.txt"
        with contextlib.suppress(OSError), path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 2000))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return "".join(c for c in " ".join(lines[-2:]) if c.isprintable())[:300]
        return ""


def _environment(interpret: bool) -> dict[str, str]:
    """What workers see: no secrets, threads that sleep while they wait, and an allocator that keeps memory.

    An OpenMP thread that spins after its worker's call would slow the next side's. Without `STEADY_MEMORY` the C
    library returns every large result to the system and each call pays page faults for it
    anew; with them all sides allocate in a steady state, as the GPU's allocator does.
    """
    kept = {k: v for k, v in os.environ.items() if k in _PASSED_VARIABLES or k.startswith(_PASSED_PREFIXES)}
    kept |= {"OMP_WAIT_POLICY": "passive", "PYTHONDONTWRITEBYTECODE": "1"}
    kept |= STEADY_MEMORY
    kept |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    kept.pop("TRITON_INTERPRET", None)
    return kept | ({"TRITON_INTERPRET": "1"} if interpret else {})


def keep_freed_memory() -> None:
    """The same allocator setting for this process: grading makes and drops large tensors all the time."""
    with contextlib.suppress(AttributeError, OSError):  # another C library than glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_ALL)
