"""Energy of a call: the GPU's own counter, read while a side replays its block, times what a call takes."""

from __future__ import annotations

import math
import time

from warpsmith.lab.session import Session
from warpsmith.lab.telemetry import Gauge

LEAD_SECONDS = 0.3
"""Replays before the counter is read: by then clocks and power have settled."""

WINDOW_SECONDS = 1.0
"""How long it is read: tens of its steps."""

_MARGIN_SECONDS = 0.3
_POLL_SECONDS = 2e-3
_FEWEST_STEPS = 4


def a_call(session: Session, name: str, seconds: float, gauge: Gauge) -> float | None:
    """Joules of one call of a side whose block is captured; None where the GPU does not count them.

    The whole board's energy, what it takes when it idles included.

    Args:
        session: of the workload; its blocks do not fit the L2 cache, where its timing is cold.
        name: the side.
        seconds: what a call takes.
        gauge: of the GPU.

    Raises:
        Failed: the side fails.
    """
    if gauge.joules() is None:
        return None
    found: list[float | None] = []
    lasts = LEAD_SECONDS + WINDOW_SECONDS + _MARGIN_SECONDS
    session.repeated(name, math.ceil(lasts / (seconds * session.slots)), lambda: found.append(_watts(gauge)))
    return None if found[0] is None else found[0] * seconds


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
