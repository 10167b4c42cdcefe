"""Leftovers: what the calls of a version leave changed, open or running in the process that it shares with its
caller."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import psutil

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import Status
from warpsmith.core.text import quote_foreign
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers import process
from warpsmith.lab.workers.side import Side, SideFailed

_IDLE_MS = gate_rules.IDLE_SECONDS * 1e3


def require_same_state(side: Side) -> None:
    """Ask a version's process what its calls left changed.

    Raises:
        SideFailed: something is not as it was before the version was loaded.
    """
    try:
        changes = side.ask({"do": "compare_state"}).get("changes")
    finally:
        side.pause()
    if not isinstance(changes, list):
        raise SideFailed(Status.RUNTIME_ERROR, "the worker does not report the state of its process", SOLUTION)
    if changes:
        message = f"its calls leave changed: {quote_foreign('; '.join(map(str, changes)))}"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


def require_own_exit_code(side: Side) -> None:
    """End a version's process as its user's program would end, and look at the exit code.

    Raises:
        SideFailed: it is another one than the program gave.
    """
    expected = random.SystemRandom().randrange(*_EXIT_CODES)
    code = side.leave(expected)
    if code not in (expected, None):
        end = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        message = f"a program that calls it ends {end} instead of with exit code {expected}"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


def require_few_leftovers(side: Side) -> None:
    """Check what a version's process has left running after it was timed.

    Raises:
        SideFailed: processes, or far more threads than a machine has cores.
    """
    if processes := side.descendants():
        raise SideFailed(Status.LEFT_BEHIND, f"its calls left {len(processes)} processes running", SOLUTION)
    threads, per_core, more = count_threads(side.pid), *gate_rules.THREADS_AFTER_TIMING
    if threads > per_core * (os.cpu_count() or 1) + more:
        raise SideFailed(Status.LEFT_BEHIND, f"{threads} threads run after its calls were timed", SOLUTION)
    side.resume()
    time.sleep(gate_rules.IDLE_SECONDS / 2)  # what its last call has yet to clear up
    before = process.core_seconds(side.pid)
    time.sleep(gate_rules.IDLE_SECONDS)
    busy = process.core_seconds(side.pid) - before
    side.pause()
    if busy > gate_rules.IDLE_SHARE * gate_rules.IDLE_SECONDS:
        message = f"its process keeps a core busy while nobody calls it: {busy * 1e3:.0f} ms of {_IDLE_MS:.0f}"
        raise SideFailed(Status.LEFT_BEHIND, message, SOLUTION)


_EXIT_CODES = (3, 100)
"""Range of exit codes that no handler gives by chance."""

_LIMITS = {
    "processes unreaped": gate_rules.LEFT_FILES,
    "threads running": gate_rules.LEFT_THREADS,
    "files open": gate_rules.LEFT_FILES,
    "mappings of memory": gate_rules.LEFT_MAPPINGS,
}
_PER_CALL = ("processes unreaped", "threads running")
"""Leftovers of which no call may add one: where calls are few, the limit is below their number."""


def count_leftovers(pid: int) -> dict[str, int]:
    """Count what a process holds of each of `_LIMITS`; 0 where it cannot be seen."""
    folder = Path(f"/proc/{pid}")
    try:
        files = sum(1 for _ in (folder / "fd").iterdir())
        with (folder / "maps").open("rb") as maps:
            mappings = sum(1 for _ in maps)
    except OSError:
        files = mappings = 0
    counts = (len(process.list_children(pid)), count_threads(pid), files, mappings)
    return dict(zip(_LIMITS, counts, strict=True))


def require_few_left(side: Side, before: dict[str, int], calls: int) -> None:
    """Compare what a version's process holds after many calls with a count before them.

    Raises:
        SideFailed: the calls left processes, threads, open files or mappings behind.
    """
    if processes := side.descendants():
        raise SideFailed(Status.LEFT_BEHIND, f"its calls left {len(processes)} processes running", SOLUTION)
    for name, count in count_leftovers(side.pid).items():
        limit = min(_LIMITS[name], calls - 1) if name in _PER_CALL else _LIMITS[name]
        if count - before[name] > limit:
            raise SideFailed(Status.LEFT_BEHIND, f"{calls} calls left {count - before[name]} {name}", SOLUTION)


def count_threads(pid: int) -> int:
    """Return the threads of a process; 0 where they cannot be seen."""
    try:
        return int(psutil.Process(pid).num_threads())
    except psutil.Error:
        return 0
