"""Bursts: calls one after the other, as a program makes them, in processes with the system's own settings.

Timed calls come one at a time, after a message, in processes that keep freed memory. What a version gains only
there is no gain: work that it leaves for a moment when no clock runs, or for a call that is not timed, and memory
that would cost page faults elsewhere. In a burst all of it is in the time.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from math import log
from statistics import median
from typing import Final

from warpsmith.core import gate_rules
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BEST, Status
from warpsmith.core.trust import Check
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.arenas import CHECKED_SLOTS, allocate_arenas
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.timing.sides import Sides, load_side
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker_host import WorkerHost

_NAMES: Final = (SOLUTION, BEST)


def check_bursts(
    file: DefinitionFile, host: WorkerHost, sides: Sides, workloads: Sequence[Workload], gain: float
) -> Check:
    """Time bursts of a version and of the best one in turns, on a CPU, at a timed workload drawn by chance.

    Args:
        file: the definition.
        host: host of the judgement, which the further processes are like but for their settings.
        sides: the judgement's sides, for the code of both.
        workloads: timed workloads.
        gain: speedup over the best version that was measured.

    Raises:
        SideFailed: in no pair of bursts is there a part of the gain.
    """
    chance = random.SystemRandom()
    workload = chance.choice(workloads)
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(host.with_system_settings())
        arenas = allocate_arenas(file, [workload], [], _NAMES, "cpu")
        stack.callback(arenas.close)
        running = {}
        for name in chance.sample(_NAMES, len(_NAMES)):
            source = sides.source(name)
            running[name] = plain.start_side(name, source.limits, trusted=False)
            stack.callback(running[name].close)
            load_side(running[name], file, source, arenas, "cpu")
            running[name].pause()
        session = Session(file, workload, arenas, running, chance.getrandbits(62), "cpu", count=CHECKED_SLOTS)
        session.fill_inputs()
        for name in _NAMES:
            _seconds_of_call(session, name)
        pairs = [
            {name: _seconds_of_call(session, name) for name in chance.sample(_NAMES, len(_NAMES))}
            for _ in range(gate_rules.BURST_PAIRS)
        ]
    speedups = [pair[BEST] / pair[SOLUTION] for pair in pairs]
    least = gate_rules.BURST_SHARE * log(gain) - gate_rules.BURST_NOISE
    if log(max(speedups)) < least:
        raise SideFailed(
            Status.IMPLAUSIBLE_TIME,
            f"{gain - 1:+.1%} where single calls are timed, but {max(speedups) - 1:+.1%} at most in bursts at"
            f" {workload.name}, in processes with the system's settings: no program gains by it",
            SOLUTION,
        )
    pairs_at = f"{gate_rules.BURST_PAIRS} pairs at {workload.name} with the system's settings"
    return Check(name="bursts of calls", ran=True, how=f"{pairs_at}, {median(speedups) - 1:+.1%}")


def _seconds_of_call(session: Session, name: str) -> float:
    """Return the seconds of a call in a burst over all slots."""
    started = time.perf_counter()
    calls = session.call_in_burst(name, gate_rules.BURST_CALLS, gate_rules.BURST_SECONDS)
    return (time.perf_counter() - started) / max(calls, 1)
