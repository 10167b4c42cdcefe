"""Energy of a call: the GPU's own counter, read while a side is called and called, times what a call takes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from warpsmith.core.evaluation import BEST, Energy, Joules, Status
from warpsmith.core.hardware import Target
from warpsmith.core.race import Mode
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import machine
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.heat import Heat
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import Failed

LEAD_SECONDS = 0.3
"""Calls before the counter is read: by then clocks and power have settled."""

WINDOW_SECONDS = 1.0
"""How long it is read: tens of its steps."""

PAIRS = 6
"""Readings of each side in one batch; even, since the best one's are compared two by two."""

_LEAST_SHARE, _LEAST_SHARE_WARM = 0.8, 0.5
_MARGIN_SECONDS = 0.3
_POLL_SECONDS = 2e-3
_FEWEST_STEPS = 4


def a_call(heat: Heat, name: str, seconds: float, gauge: Gauge, mode: Mode = "graph") -> float | None:
    """Joules of one call of a side; None where the GPU does not count them.

    The whole board's energy, what it takes when it idles included.

    Args:
        heat: of the workload; its blocks do not fit the L2 cache, where its timing is cold.
        name: the side.
        seconds: what a call takes, in that mode.
        gauge: of the GPU.
        mode: `graph`: its captured block is replayed; `eager`: its calls are launched back to back, and what the
            device waits for the host between them counts too.

    Raises:
        Failed: the side fails.
    """
    if gauge.joules() is None:
        return None
    watts = _replayed(heat, name, seconds, gauge)[0] if mode == "graph" else _launched(heat, name, gauge)
    return None if watts is None else watts * seconds


def missing(target: Target) -> str | None:
    """Why this machine cannot tell joules, in a sentence; None: it can.

    Raises:
        MachineLacks: the target is a GPU and this machine has none, or another one.
    """
    gauge = Gauge(machine.machine(target).uuid)
    if gauge.joules() is not None:
        return None
    why = gauge.why or "its driver does not count joules"
    return f"Energy cannot be the objective on this {target.id}, which has no energy counter to read: {why}."


def read(session: Session, samples: Samples, gauge: Gauge) -> None:
    """Add a batch of readings to `samples.joules`, in joules a call, of the sides in turns.

    Their order turns round each time, so that a drift weighs on none.

    Args:
        session: of the version, and of the best one where there is one.
        samples: their times at this workload; the grades of the version's results are added too.
        gauge: of the GPU.

    Raises:
        Failed: a side fails, is no CUDA graph, or replays quicker than it was timed; a result is wrong.
        MachineFailed: the counter stands still.
    """
    for name, why in session.capture().items():  # anew: the version's last graph held a single call
        message = f"no CUDA graph holds it ({why}), and joules are read from replays"
        raise Failed(Status.RUNTIME_ERROR, message, name)
    order = [name for name in (SOLUTION, BEST) if name in session.sides]
    for _ in range(PAIRS):
        for name in order:
            samples.joules[name].append(_reading(session, name, samples, gauge))
        order.reverse()


def summarise(readings: Mapping[str, Mapping[str, Sequence[float]]]) -> Energy:
    """The record of all readings: workload to side to joules a call."""
    paired = {name: (sides[SOLUTION], sides[BEST]) for name, sides in readings.items() if BEST in sides}
    workloads = {name: _joules(sides[SOLUTION], sides.get(BEST)) for name, sides in readings.items()}
    if not paired:
        return Energy(workloads=workloads)
    # those that followed each other
    itself = {name: (best[::2], best[1::2]) for name, (_, best) in paired.items()}
    return Energy(
        workloads=workloads,
        aggregate=statistics.geometric_mean(paired, BEST),
        floor=statistics.floor(statistics.geometric_mean(itself, BEST)),
    )


def _joules(ours: Sequence[float], best: Sequence[float] | None) -> Joules:
    saving, interval = statistics.speedup(ours, best) if best else (None, None)
    return Joules(
        joules=statistics.median(ours),
        readings=len(ours),
        best_joules=statistics.median(best) if best else None,
        saving=saving,
        interval=interval,
    )


def _reading(session: Session, name: str, samples: Samples, gauge: Gauge) -> float:
    """Joules of a call, by the grader's own clock: the board may hold other clocks than in the short timed blocks.

    The replays are as many as would outlast the reading at the shortest plausible time; where they did not, the
    time a call comes out shorter still.
    """
    session.fill(quick=True)
    told = statistics.median(samples.seconds[name])
    least = told * (_LEAST_SHARE if session.cold else _LEAST_SHARE_WARM)
    watts, seconds = _replayed(session, name, least, gauge)
    if seconds < least:
        message = f"a call takes {told * 1e6:.1f} us where it was timed and {seconds * 1e6:.1f} us in replays"
        raise Failed(Status.IMPLAUSIBLE_TIME, f"{message} whose energy is read", name)
    if watts is None:
        raise MachineFailed("The GPU's energy counter stands still; judge again, or start by `--objective time`.")
    if name == SOLUTION:
        timing.grade(session, samples)
    return watts * seconds


def _replayed(session: Session, name: str, seconds: float, gauge: Gauge) -> tuple[float | None, float]:
    """Watts, and the seconds that a call took by the grader's clock, where it takes `seconds` or more."""
    found: list[float | None] = []
    times = math.ceil((LEAD_SECONDS + WINDOW_SECONDS + _MARGIN_SECONDS) / (seconds * session.slots))
    started = time.monotonic()
    session.repeated(name, times, lambda: found.append(_watts(gauge)))
    return found[0], (time.monotonic() - started) / (times * session.slots)


def _launched(heat: Heat, name: str, gauge: Gauge) -> float | None:
    """The counter is read beside the launches: these go on until it has been."""
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(_watts, gauge)
        heat.launched(name, lambda: not reading.done())
    return reading.result()


def _watts(gauge: Gauge) -> float | None:
    """Mean power between the first and the last step of the counter; None where there are too few."""
    time.sleep(LEAD_SECONDS)
    steps: list[tuple[float, float]] = []
    last, end = gauge.joules(), time.monotonic() + WINDOW_SECONDS
    while (now := time.monotonic()) < end:
        value = gauge.joules()
        if value is not None and value != last:
            steps.append((now, value))
            last = value
        time.sleep(_POLL_SECONDS)
    if len(steps) < _FEWEST_STEPS:
        return None
    (start, before), (stop, after) = steps[0], steps[-1]
    return (after - before) / (stop - start)
