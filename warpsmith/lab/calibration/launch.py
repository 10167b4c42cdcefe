"""Launch floor of this machine: the time of an operator on one element, timed as versions are.

A kernel that does nothing still takes this long, so no workload is held to a shorter time.
"""

from __future__ import annotations

from warpsmith.core import gate_rules
from warpsmith.core.hardware import Clock, LaunchFloor, Target
from warpsmith.lab.calibration.noise import IdenticalSides
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.session import Session

BLOCKS = {"cpu": 200, "cuda": 40}
"""Blocks that are timed with each clock. A block on a GPU has many calls, one on a CPU has one. Chosen."""

QUANTILE = 0.25
"""Share of the blocks that are faster than the launch floor: below half, because load only lengthens a call."""

_SIDE, _SIZE = "single", "1x1"


def measure_launch(target: Target) -> dict[Clock, LaunchFloor]:
    """Measure the launch floor by each clock of the device.

    Raises:
        MachineFailed: the worker fails.
    """
    with IdenticalSides(target, (_SIDE,), (_SIZE,)) as sides:
        sides.restart()
        session = sides.open_session(sides.workloads[0])
        if sides.device == "cpu":
            return {"parent": _time_calls(session)}
        floors: dict[Clock, LaunchFloor] = {"events": _time_calls(session)}
        if not session.capture_graphs():
            floors["graph"] = _time_calls(session)
        return floors


def _time_calls(session: Session) -> LaunchFloor:
    """Time blocks of calls; a few warm up."""
    seconds = []
    for block in range(gate_rules.WARM_UP_ROUNDS + BLOCKS[session.device]):
        session.fill_inputs(quick=True)
        time = session.time_block(_SIDE).seconds
        if block >= gate_rules.WARM_UP_ROUNDS:
            seconds.append(time)
    return LaunchFloor(
        seconds=statistics.quantile(seconds, QUANTILE), spread=statistics.spread(seconds), samples=len(seconds)
    )
