"""Sides: implementations that run in worker processes of their own, as the grader sees them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from warpsmith.core.definition import Definition, Tolerance
from warpsmith.core.evaluation import Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.arena import Arena
from warpsmith.lab.channel import Channel, Closed, Message
from warpsmith.languages.base import Build

_START_SECONDS = 120.0
_WATCH_SECONDS = 0.1
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_KEEP_ALL = 2**31 - 1

STEADY_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(_KEEP_ALL),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
}
"""Environment in which the C library keeps what is freed, in huge pages where the kernel has them."""

_KEPT = ("PATH", "HOME", "LANG", "CXX", "CC", "LD_LIBRARY_PATH", "TMPDIR", "USER", "VIRTUAL_ENV")
_KEPT_PREFIXES = ("CUDA", "NVIDIA", "TRITON", "OMP_", "NCCL_", "TORCH_SYMM", "NVSHMEM", "TORCHINDUCTOR")


class Failed(Exception):
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

    def __init__(self, device: str, interpret: bool = False) -> None:
        keep_memory()
        self._channel, theirs = Channel.pair()
        self._folder = tempfile.TemporaryDirectory(prefix="warpsmith-")
        preload = ["torch", "warpsmith.lab.worker", *(["triton"] if device != "cpu" or interpret else [])]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warpsmith.lab.zygote", str(theirs.fileno()), *preload],
                pass_fds=(theirs.fileno(),),
                env=_environment(interpret),
                stdin=subprocess.DEVNULL,
            )
        self._ready = False

    def side(self, name: str, limits: Limits) -> Side:
        """A new worker; it has loaded nothing yet."""
        self._await()
        ours, theirs = Channel.pair()
        scratch = Path(tempfile.mkdtemp(prefix=f"{name.replace('/', '-')}-", dir=self._folder.name))
        log = scratch / "output.txt"
        with theirs, log.open("wb") as output:
            self._channel.send({"spawn": str(scratch)}, (theirs.fileno(), output.fileno()))
            pid = self._answer()["pid"]
        return Side(name, ours, pid, limits, log, self)

    def reap(self, pid: int) -> int:
        """Kill a worker with everything it started; its wait status."""
        self._channel.send({"reap": pid})
        return int(self._answer()["status"])

    def close(self) -> None:
        """End everything that was started."""
        self._channel.close()
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

    def _answer(self) -> Message:
        if not self._channel.wait(time.monotonic() + _START_SECONDS, 1.0, lambda: None):
            raise MachineFailed("The worker host does not answer; is the machine out of memory?")
        try:
            return self._channel.receive()[0]
        except Closed as error:
            raise MachineFailed(
                "The worker host died; is torch installed (`pip install warpsmith[lab]`)?"
            ) from error


class Side:
    """One implementation in its worker. Every method raises Failed when the worker does not deliver."""

    def __init__(self, name: str, channel: Channel, pid: int, limits: Limits, log: Path, host: WorkerHost) -> None:
        self.name = name
        self._channel, self._pid, self._limits, self._log, self._host = channel, pid, limits, log, host
        self._alive = True

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
        handles, files = zip(*(arena.handle() for arena in arenas), strict=True)
        if isinstance(source, Build):
            what = {"language": language, "source": str(source.source), "artifact": str(source.artifact)}
        else:
            what = {"definition": str(source[0]), "peer": source[1]}
        blind = definition.model_copy(update={"tolerance": Tolerance()})  # how near is near enough stays here
        message = {"do": "load", "device": device, "threads": threads, "arenas": list(handles), "side": what,
                   "definition": blind.model_dump(mode="json")}  # fmt: skip
        self.tell(message, tuple(file for group in files for file in group))

    def ask(self, message: Message, files: tuple[int, ...] = ()) -> Message:
        """Tell the worker something and return its answer."""
        self.tell(message, files)
        return self.answer(message["do"])

    def tell(self, message: Message, files: tuple[int, ...] = ()) -> None:
        """Send without waiting; exactly one `answer` must follow."""
        if not self._alive:
            raise Failed(Status.RUNTIME_ERROR, f"{self.name} is not running", self.name)
        try:
            self._channel.send(message, files)
        except Closed:
            raise self._died() from None

    def answer(self, doing: str) -> Message:
        """Wait for the answer, watching time and memory."""
        deadline = time.monotonic() + self._limits.seconds
        try:
            if not self._channel.wait(deadline, _WATCH_SECONDS, self._watch):
                self.close()
                raise Failed(
                    Status.TIMEOUT,
                    f"{doing} did not end within {self._limits.seconds:g} s and was killed",
                    self.name,
                )
            answer = self._channel.receive()[0]
        except Closed:
            raise self._died() from None
        if not answer.get("ok"):
            raise self._refused(answer)
        return answer

    def close(self) -> int:
        """Kill the worker and whatever it started; its wait status."""
        if not self._alive:
            return 0
        self._alive = False
        self._channel.close()
        return self._host.reap(self._pid)

    def _watch(self) -> None:
        used = 0
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self._pid)
            used = sum(_private(p) for p in (process, *process.children(recursive=True)))
        if used > self._limits.memory:
            self.close()
            much = f"it took {used / 2**30:.1f} GiB, over {self._limits.memory / 2**30:.1f} GiB"
            raise Failed(Status.OUT_OF_MEMORY, much, self.name)

    def _died(self) -> Failed:
        status = self.close()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            how = f"was killed by {signal.Signals(os.WTERMSIG(status)).name}"
        elif os.WIFEXITED(status):
            how = f"exited with code {os.WEXITSTATUS(status)}"
        else:
            how = "was killed"
        tail = self._tail()
        said = f"; it last said: {tail}" if tail else ""
        return Failed(Status.RUNTIME_ERROR, f"the worker {how}{said}", self.name)

    def _refused(self, answer: dict[str, Any]) -> Failed:
        name, text = str(answer.get("error")), str(answer.get("message"))
        memory = name in ("OutOfMemoryError", "MemoryError") or "out of memory" in text.lower()
        status = Status.OUT_OF_MEMORY if memory else Status.RUNTIME_ERROR
        return Failed(status, f"{name}: {text}"[:600], self.name)

    def _tail(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - 2000))
            lines = log.read().decode(errors="replace").strip().splitlines()
            return "".join(c for c in " ".join(lines[-2:]) if c.isprintable())[:300]
        return ""


def _private(process: psutil.Process) -> int:
    """Resident bytes that are not shared: the arenas are the grader's."""
    memory = process.memory_info()
    return int(memory.rss - memory.shared)


def _environment(interpret: bool) -> dict[str, str]:
    """What workers see: no secrets, threads that sleep while they wait, and an allocator that keeps memory.

    An OpenMP thread that spins after its worker's call would slow the next side's. Without `STEADY_MEMORY` the C
    library returns every large result to the system and each call pays page faults for it
    anew; with them all sides allocate in a steady state, as the GPU's allocator does.
    """
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
    kept |= {"OMP_WAIT_POLICY": "passive", "PYTHONDONTWRITEBYTECODE": "1"}
    kept |= STEADY_MEMORY
    kept |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    kept.pop("TRITON_INTERPRET", None)
    return kept | ({"TRITON_INTERPRET": "1"} if interpret else {})


def keep_memory() -> None:
    """The same allocator setting for this process: grading makes and drops large tensors all the time."""
    with contextlib.suppress(AttributeError, OSError):  # another C library than glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_ALL)
