"""Other processes as /proc shows them: their descendants, how to stop them, and their memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from warpsmith.core import gate_rules

STOPPED_STATES = "Tt"
"""States of a stopped process."""
_ENDED_STATES = "ZX"
_POLL_SECONDS = 2e-5
_CPU_CLOCK_OF_PROCESS = 2  # One of the clocks of another process, as numbered by Linux in clock_getcpuclockid().
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessStat(NamedTuple):
    """Fields of /proc/<pid>/stat."""

    state: str
    """State: `R` runs, `T` is stopped, `Z` has ended."""
    parent: int
    """Process id of the parent."""
    group: int
    """Id of the process group."""


class _IoVector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_uint64), ("length", ctypes.c_size_t))


def read_stat(path: str) -> ProcessStat | None:
    """Read `/proc/<path>/stat` of a process `<pid>` or a thread `<pid>/task/<tid>`; None if it is gone."""
    try:
        with open(f"/proc/{path}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slower, and this runs between timed calls
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return ProcessStat(fields[0].decode(), int(fields[1]), int(fields[2]))


def is_alive(pid: int) -> bool:
    """Return whether the process has not ended."""
    stat = read_stat(str(pid))
    return stat is not None and stat.state not in _ENDED_STATES


def list_children(pid: int) -> list[int]:
    """List the processes that the threads of `pid` started or adopted, including ended ones."""
    pids: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            pids += map(int, Path(f"/proc/{thread}/children").read_text().split())
    return pids


def list_descendants(roots: Iterable[int], most: int) -> list[int]:
    """List the living processes below `roots`, without the roots.

    The search stops after the generation in which it exceeds `most` processes.
    """
    descendants: list[int] = []
    generation = [*roots]
    while generation and len(descendants) <= most:
        generation = [child for pid in generation for child in list_children(pid)]
        descendants += [pid for pid in generation if is_alive(pid)]
    return descendants


def private_bytes(pid: int) -> int:
    """Return the resident bytes that are not shared as files are.

    Arenas are therefore left out; pages left from a fork are counted.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0


def resident_shared_bytes(pid: int) -> int:
    """Return the resident bytes of shared memory, which is arenas and what it shares by itself."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return sum(int(words[1]) << 10 for words in fields if words[0] == "RssShmem:")
    return 0


def proportional_bytes(pid: int) -> int:
    """Return the same bytes with every page divided by the number of processes that share it.

    This is slow, since the kernel walks all pages.
    """
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:"))
    return private_bytes(pid)


def signal_all(group: int, others: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to a process group and to further processes; ignore those that are gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def core_seconds(pid: int) -> float:
    """Return the seconds of core time that all threads of a process used; 0 if it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK_OF_PROCESS)
    except OSError:
        return 0.0


def set_cores(pid: int, cores: Iterable[int]) -> None:
    """Keep all threads of a process, and those that they start, on the given cores."""
    for thread in _threads(pid):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.rpartition("/")[2]), cores)


def read_cores(pid: int) -> set[int]:
    """Return the cores that any thread of a process may use; none if it is gone."""
    cores: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            with contextlib.suppress(ProcessLookupError):
                cores |= os.sched_getaffinity(int(thread.rpartition("/")[2]))
    return cores


def await_stop(pid: int) -> bool:
    """Wait until no thread of a process that was sent a stop signal runs; return False if that takes too long."""
    deadline = time.monotonic() + gate_rules.STOP_SECONDS
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            while (stat := read_stat(thread)) is not None and stat.state not in STOPPED_STATES + _ENDED_STATES:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_SECONDS)
    return True


def read_memory(pid: int, address: int, target: memoryview) -> None:
    """Copy from another process's memory into `target`, which must be writable and contiguous.

    Raises:
        OSError: not all of it can be read.
    """
    size = target.nbytes
    if size == 0:
        return
    if not 0 <= address < 1 << 63:
        raise OSError(f"{address:#x} is not an address")
    base = ctypes.addressof(ctypes.c_char.from_buffer(target))
    read_remote = _libc().process_vm_readv
    read_remote.restype = ctypes.c_ssize_t
    copied = 0
    while copied < size:
        local, remote = _IoVector(base + copied, size - copied), _IoVector(address + copied, size - copied)
        count = read_remote(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        if count <= 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        copied += count


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process.

    Raises:
        OSError: the kernel refuses.
    """
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _threads(pid: int) -> list[str]:
    return [f"{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
