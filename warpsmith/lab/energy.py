"""Energy of a call: the GPU's own counter, read while a side is called and called, times what a call takes."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

from warpsmith.core.race import Mode
from warpsmith.lab.heat import Heat
from warpsmith.lab.telemetry import Gauge

LEAD_SECONDS = 0.3
"""Calls before the counter is read: by then clocks and power have settled."""

WINDOW_SECONDS = 1.0
"""How long it is read: tens of its steps."""

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
    watts = _replayed(heat, name, seconds, gauge) if mode == "graph" else _launched(heat, name, gauge)
    return None if watts is None else watts * seconds


def _replayed(heat: Heat, name: str, seconds: float, gauge: Gauge) -> float | None:
    found: list[float | None] = []
    lasts = LEAD_SECONDS + WINDOW_SECONDS + _MARGIN_SECONDS
    heat.repeated(name, math.ceil(lasts / (seconds * heat.slots)), lambda: found.append(_watts(gauge)))
    return found[0]


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
