"""Energy of a call of any side of a race, whether or not a CUDA graph holds it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from warpsmith.core.race import Mode
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.race.race_session import RaceSession
from warpsmith.lab.timing import energy


def joules_per_call(
    session: RaceSession, name: str, seconds: float, gauge: Gauge, mode: Mode = "graph"
) -> float | None:
    """Return the joules of one call of a side; None if the GPU does not count them.

    They are those of the whole board, including what it takes when it idles.

    Args:
        session: session of the workload; where it is timed cold, its blocks do not fit the L2 cache.
        name: the side.
        seconds: seconds of a call in that mode.
        gauge: reads the GPU.
        mode: `graph` replays the side's captured block; `eager` launches its calls back to back, which includes
            the time that the device waits for the host between them.

    Raises:
        SideFailed: the side fails.
    """
    if gauge.joules() is None:
        return None
    if mode == "graph":
        watts = energy.measure_replays(session, name, seconds, gauge)[0]
    else:
        watts = _watts_of_launches(session, name, gauge)
    return None if watts is None else watts * seconds


def _watts_of_launches(session: RaceSession, name: str, gauge: Gauge) -> float | None:
    """Launch calls until a thread has read the counter; return its watts."""
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(energy.mean_watts, gauge)
        session.launch_blocks(name, lambda: not reading.done())
    return reading.result()
