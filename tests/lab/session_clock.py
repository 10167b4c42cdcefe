"""Clocks for tests of real sessions: every phase runs, and no time depends on the load of the machine.

`use_core_clock` counts the core time of a side, and `use_scripted_clock` takes seconds from the source of a side.
A start-up file of processes that a test starts calls the latter (see `tests/claude_code/clock`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from warpsmith.lab.gate.calls import bursts
from warpsmith.lab.timing import session
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.session import CallTime, Session
from warpsmith.lab.workers import process
from warpsmith.lab.workers.side import Side
from warpsmith.languages.base import Build

_TICK = 1e-7
"""Least seconds between two readings of the core clock."""

Patch = Callable[[Any, str, Any], None]
"""Sets an attribute, as `setattr` and `pytest.MonkeyPatch.setattr` do."""


def use_core_clock(patch: Patch) -> None:
    """Replace the grader's clock in sessions by the core time of the process of the side that is called."""
    called: list[int] = []
    call_side = Session.call_side

    def call(self: Session, name: str, *arguments: Any, **options: Any) -> float:
        called[:] = [self.sides[name].pid]
        return call_side(self, name, *arguments, **options)

    patch(Session, "call_side", call)
    ticks = itertools.count()  # a call that ends within the kernel's own resolution still took time
    clock = SimpleNamespace(perf_counter=lambda: process.core_seconds(called[0]) + next(ticks) * _TICK)
    patch(session, "time", clock)


def wait_for_core_time(pid: int, seconds: float, limit: float = 60.0) -> None:
    """Wait until the threads of a process used that much core time."""
    before, deadline = process.core_seconds(pid), time.monotonic() + limit
    while process.core_seconds(pid) < before + seconds and time.monotonic() < deadline:
        time.sleep(0.001)


def yield_to_main_thread(pid: int) -> None:
    """Put a process on one core, where its other threads run only while its main thread waits."""
    core = min(os.sched_getaffinity(0))
    for folder in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(folder.name), {core})
        if int(folder.name) != pid:
            os.sched_setscheduler(int(folder.name), os.SCHED_IDLE, os.sched_param(0))


def wait_for_sleep(pid: int, limit: float = 60.0) -> None:
    """Wait until a process with one thread sleeps, since it has handled all that it was sent."""
    deadline = time.monotonic() + limit
    while (stat := process.read_stat(str(pid))) and stat.state != "S" and time.monotonic() < deadline:
        time.sleep(0.001)


def use_scripted_clock(patch: Patch, seconds_of: Callable[[str], float], reference: float = 2e-4) -> None:
    """Replace the times that sessions take by `seconds_of` a version's source, or `reference` for a peer.

    Times vary by 1 %, always in the same order.
    """
    seconds: dict[int, float] = {}
    wobble = itertools.cycle((0.99, 1.0, 1.01))
    load, call_side = Side.load, Session.call_side

    def load_side(self: Side, definition: Any, code: Build | tuple[Path, str], *rest: Any, **named: Any) -> Any:
        is_version = isinstance(code, Build)
        seconds[self.pid] = seconds_of(Path(code.source).read_text()) if is_version else reference
        return load(self, definition, code, *rest, **named)

    def time_block(self: Session, name: str, **_: Any) -> TimedBlock:
        call_side(self, name)
        return TimedBlock(seconds[self.sides[name].pid] * next(wobble), 0.0)

    def time_one_call_cold(self: Session, name: str) -> CallTime:
        call_side(self, name)
        scripted = seconds[self.sides[name].pid]
        return CallTime(scripted, scripted)

    def time_burst(self: Session, name: str) -> float:
        self.call_in_burst(name, 1, 1.0)
        return seconds[self.sides[name].pid]

    patch(Side, "load", load_side)
    patch(Session, "time_block", time_block)
    patch(Session, "time_one_call_cold", time_one_call_cold)
    patch(bursts, "_seconds_of_call", time_burst)
    patch(Session, "time_hand_over", lambda self, name: CallTime(0.0, 0.0))
