"""Processes seen from outside through /proc: who lives below whom, stopping, and reading their memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

STOPPED_STATES = "Tt"
"""States of a process that was told to stop."""
_ENDED_STATES = "ZX"
_STOP_SECONDS = 20.0  # a core that others keep busy, or a page that is read from disk, may take this long
_POLL_SECONDS = 2e-5
_CPU_CLOCK_OF_PROCESS = 2  # of the clocks that Linux has for another process, as clock_getcpuclockid() names them
_PAGE = os.sysconf("SC_PAGE_SIZE")


class ProcessStat(NamedTuple):
    """A line of /proc/<pid>/stat."""

    state: str
    """`R` runs, `T` is stopped, `Z` has ended."""
    parent: int
    """Process id."""
    group: int
    """Process group."""


class _IoVector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_uint64), ("length", ctypes.c_size_t))


def read_stat(path: str) -> ProcessStat | None:
    """What `/proc/<path>/stat` says of a process `<pid>` or a thread `<pid>/task/<tid>`; None: it is gone."""
    try:
        with open(f"/proc/{path}/stat", "rb") as file:  # noqa: PTH123 - read between timed calls
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return ProcessStat(fields[0].decode(), int(fields[1]), int(fields[2]))


def is_alive(pid: int) -> bool:
    """Whether it has not ended."""
    found = read_stat(str(pid))
    return found is not None and found.state not in _ENDED_STATES


def list_children(pid: int) -> list[int]:
    """What its threads started, and what was handed to it, ended or not."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            found += map(int, Path(f"/proc/{thread}/children").read_text().split())
    return found


def list_descendants(roots: Iterable[int], most: int) -> list[int]:
    """The living processes below `roots`, without them; no more than `most` and one generation are looked up."""
    found: list[int] = []
    generation = [*roots]
    while generation and len(found) <= most:
        generation = [child for pid in generation for child in list_children(pid)]
        found += [pid for pid in generation if is_alive(pid)]
    return found


def private_bytes(pid: int) -> int:
    """Resident bytes that are not shared as files are, so without arenas; pages that a fork left are counted."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0


def proportional_bytes(pid: int) -> int:
    """The same with every page divided by the processes that share it. Slow: the kernel walks all pages."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:"))
    return private_bytes(pid)


def signal_all(group: int, others: Iterable[int], number: signal.Signals) -> None:
    """Signal a process group and further processes; those that are gone are passed over."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def core_seconds(pid: int) -> float:
    """Seconds that a process, all of its threads together, had a core for; 0 where it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK_OF_PROCESS)
    except OSError:
        return 0.0


def await_stop(pid: int) -> bool:
    """Wait until no thread of a process that was told to stop runs any more; False: it takes too long."""
    deadline = time.monotonic() + _STOP_SECONDS
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in _threads(pid):
            while (found := read_stat(thread)) is not None and found.state not in STOPPED_STATES + _ENDED_STATES:
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
        raise OSError(f"{address:#x} is no address")
    base = ctypes.addressof(ctypes.c_char.from_buffer(target))
    call = _libc().process_vm_readv
    call.restype = ctypes.c_ssize_t
    done = 0
    while done < size:
        ours, theirs = _IoVector(base + done, size - done), _IoVector(address + done, size - done)
        count = call(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
        if count <= 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        done += count


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
