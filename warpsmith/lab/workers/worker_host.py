"""Host of workers: the process that forks them, and the environment that they have in common."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from warpsmith import files, languages
from warpsmith.errors import CompanionFailed
from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.lab.workers.side import Limits, Side
from warpsmith.languages.base import Build
from warpsmith.packages import install_command
from warpsmith.passed_environment import candidate_environment
from warpsmith.temporary import TemporaryFolder

_START_SECONDS = 120.0
_PRELOADED = ("torch", "warpsmith.lab.workers.worker")
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_KEEP_ALL = 2**31 - 1

STEADY_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(_KEEP_ALL),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
}
"""Environment that makes the C library keep freed memory, in huge pages if the kernel supports them."""

_USUAL_THREADS = {"GOMP_SPINCOUNT": "300000"}
"""Environment in which OpenMP's threads spin before they sleep, as GNU's do where nothing is set."""


class WorkerHost:
    """Source of workers: one zygote process, and everything that it forked."""

    def __init__(
        self,
        device: str,
        interpret: bool = False,
        hidden: Sequence[Path] = (),
        compiled: Path | None = None,
        steady: bool = True,
    ) -> None:
        """Start the zygote.

        Args:
            device: `cpu` or a GPU.
            interpret: whether Triton kernels are interpreted on the CPU.
            hidden: folders that no candidate may read, even if they lie inside the system's or Python's folders.
            compiled: folder that outlives this host, for kernels that were compiled at the first call; by default
                they end with the host.
            steady: False leaves memory and threads of workers to the system's settings, as in a user's program.
        """
        keep_freed_memory()
        self._channel, zygote_end = Channel.pair()
        self._folder = TemporaryFolder()
        preload = list(_PRELOADED)
        if device != "cpu" or interpret:
            preload += [module for name in languages.names() for module in languages.get(name).preloaded]
        with zygote_end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warpsmith.lab.workers.zygote", str(zygote_end.fileno()), *preload],
                pass_fds=(zygote_end.fileno(),),
                env=_environment(interpret, steady),
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C goes to the grader, which then ends everything it started.
            )
        self._ready = False
        self.compiled = compiled or Path(self._folder.name) / "compiled"
        """Kernels that a source's own worker compiled, in folders named by the source's hash."""
        self._device, self._hidden = device, [str(path) for path in (Path(self._folder.name), *hidden)]
        self._workers: set[int] = set()
        self._idle: list[Side] = []

    def with_system_settings(self) -> WorkerHost:
        """Start another host, whose workers have the system's settings of memory and threads."""
        return WorkerHost(self._device, hidden=[Path(each) for each in self._hidden[1:]], steady=False)

    def start_side(self, name: str, limits: Limits, trusted: bool = False) -> Side:
        """Return a worker that has not loaded anything, from the idle pool if one is there.

        Only the project's own code is trusted; a trusted worker is not sandboxed.
        """
        fitting = [side for side in self._idle if side.trusted is trusted]
        if not fitting:
            return self._start(name, limits, trusted)
        idle = random.SystemRandom().choice(fitting)  # its process id must not say which side it becomes
        self._idle.remove(idle)
        idle.name, idle._limits = name, limits
        return idle

    def compiled_kernels(self, build: Build) -> Path:
        """Return the folder with the kernels that earlier workers compiled from the same source."""
        return self.compiled / files.file_sha256(build.source)

    def restock(self, count: int, trusted: int = 0) -> None:
        """Keep `count` idle workers and `trusted` trusted ones ready.

        On a GPU they create their CUDA context in the background.
        """
        for is_trusted, target in ((False, count), (True, trusted)):
            for _ in range(target - sum(side.trusted is is_trusted for side in self._idle)):
                side = self._start("idle", Limits(), is_trusted)
                self._idle.append(side)
                if self._device != "cpu":
                    side.warm(self._device)

    @property
    def device(self) -> str:
        """Device that its workers are for: `cpu` or `cuda`."""
        return self._device

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return sorted(self._workers)

    def reap(self, pid: int) -> int:
        """Kill a worker with everything it started; return its wait status."""
        self._workers.discard(pid)
        self._send({"reap": pid})
        return int(self._answer()["status"])

    def orphans(self, pid: int) -> list[int]:
        """List processes that the zygote adopted and that may belong to this worker.

        They are in its process group, or in no worker's group.
        """
        others = self._workers - {pid}
        adopted = (child for child in process.list_children(self._process.pid) if child not in self._workers)
        return [child for child in adopted if (stat := process.read_stat(str(child))) and stat.group not in others]

    def _start(self, name: str, limits: Limits, trusted: bool) -> Side:
        self._await()
        channel, worker_end = Channel.pair()
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=self._folder.name))
        scratch, log = (
            folder / "scratch",
            folder / "output.txt",
        )  # The log is outside of the scratch folder: a worker must not replace it by a link.
        scratch.mkdir()
        message = {"spawn": str(scratch), "trusted": trusted, "hidden": self._hidden}
        with worker_end, log.open("wb") as output:
            self._send(message, (worker_end.fileno(), output.fileno()))
            pid = self._answer()["pid"]
        self._workers.add(pid)
        return Side(name, channel, pid, limits, folder, self, trusted)

    def close(self) -> None:
        """End all processes that were started."""
        self._channel.close()
        for side in self._idle:
            side.hang_up()
        self._idle.clear()
        if self._ready:  # else it still imports, and has started nothing
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
            raise CompanionFailed("The worker host died; something killed it.") from error

    def _answer(self) -> Message:
        if not self._channel.wait(time.monotonic() + _START_SECONDS, 1.0, lambda: None):
            raise CompanionFailed("The worker host does not answer; check whether the machine is out of memory.")
        try:
            return self._channel.receive()[0]
        except ChannelClosed as error:
            raise CompanionFailed(
                f"The worker host died; check that torch is installed (`{install_command('lab')}`)."
            ) from error


def _environment(interpret: bool, steady: bool) -> dict[str, str]:
    """Return the environment of workers: no secrets, and if it is `steady`, threads that sleep while they wait and
    an allocator that keeps memory.

    An OpenMP thread that spins after its worker's call would slow the next side's call. Without `STEADY_MEMORY`
    the C library returns every large result to the system, and each call pays page faults for it again. With these
    settings all sides allocate in a steady state, as the GPU's allocator does.
    """
    environment = candidate_environment()
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"OMP_WAIT_POLICY": "passive", **STEADY_MEMORY} if steady else _USUAL_THREADS
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("TRITON_INTERPRET", None)
    return environment | ({"TRITON_INTERPRET": "1"} if interpret else {})


def keep_freed_memory() -> None:
    """Apply the same allocator setting to this process, since grading allocates and frees large tensors all the
    time."""
    with contextlib.suppress(AttributeError, OSError):  # The C library is not glibc.
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEEP_ALL)
