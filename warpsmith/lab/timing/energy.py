"""Energy of a call: mean power from the GPU's own counter during replays, times the seconds of a call."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import BEST, Energy, Joules, Status
from warpsmith.core.hardware import Target
from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import identity
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing import statistics, timing
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed

_POLL_SECONDS = 2e-3


def missing_energy_counter(target: Target) -> str | None:
    """Return a sentence that says why this machine cannot measure joules, or None if it can.

    Raises:
        MachineLacks: the target is a GPU and this machine has none, or another one.
    """
    gauge = Gauge(identity.identify_machine(target).uuid)
    if gauge.joules() is not None:
        return None
    reason = gauge.unavailable or "its driver does not count joules"
    return f"Energy cannot be the objective on this {target.id}, which has no energy counter to read: {reason}."


def read_energy(session: Session, samples: Samples, gauge: Gauge) -> None:
    """Add a batch of readings to `samples.joules`, in joules per call, with the sides in turns.

    The order of the sides is reversed each time, so that a drift weighs on both alike.

    Args:
        session: has the version, and the best one where there is one.
        samples: their times at this workload; the grades of the version's results are added too.
        gauge: reads the GPU.

    Raises:
        SideFailed: a side fails, is no CUDA graph, or replays faster than it was timed; a result is wrong.
        MachineFailed: the counter stands still.
    """
    for name, reason in session.capture_graphs().items():  # again: the version's last graph held a single call
        message = f"no CUDA graph holds it ({reason}), and joules are read from replays"
        raise SideFailed(Status.RUNTIME_ERROR, message, name)
    order = [name for name in (SOLUTION, BEST) if name in session.sides]
    for _ in range(gate_rules.ENERGY_PAIRS):
        for name in order:
            samples.joules[name].append(_read_side(session, name, samples, gauge))
        order.reverse()


def summarize_energy(
    readings: Mapping[str, Mapping[str, Sequence[float]]], calls: Mapping[str, int] | None = None
) -> Energy:
    """Return the record of all readings, given workload to side to joules per call, and to calls in a trace."""
    paired = {name: (sides[SOLUTION], sides[BEST]) for name, sides in readings.items() if BEST in sides}
    workloads = {name: _summarize_workload(sides[SOLUTION], sides.get(BEST)) for name, sides in readings.items()}
    if not paired:
        return Energy(workloads=workloads)
    # readings of the best version that followed each other
    self_pairs = {name: (best[::2], best[1::2]) for name, (_, best) in paired.items()}
    return Energy(
        workloads=workloads,
        aggregate=statistics.geometric_mean(paired, BEST, calls),
        floor=statistics.self_comparison_floor(statistics.geometric_mean(self_pairs, BEST, calls)),
    )


def _summarize_workload(own: Sequence[float], best: Sequence[float] | None) -> Joules:
    saving, interval = statistics.paired_speedup(own, best) if best else (None, None)
    return Joules(
        joules=statistics.median(own),
        readings=len(own),
        best_joules=statistics.median(best) if best else None,
        saving=saving,
        interval=interval,
    )


def _read_side(session: Session, name: str, samples: Samples, gauge: Gauge) -> float:
    """Return the joules of a call of a side, with the time of a call taken by the grader's own clock.

    The grader's clock counts because the board may hold other clocks than in the short timed blocks. There are as
    many replays as outlast the reading at the shortest plausible time. If they end earlier, the time of a call is
    shorter than plausible, and the side is refused.
    """
    session.fill_inputs(quick=True)
    seconds_when_timed = statistics.median(samples.seconds[name])
    share = gate_rules.ENERGY_TIME_SHARE if session.cold else gate_rules.ENERGY_TIME_SHARE_WARM
    least = seconds_when_timed * share
    watts, seconds = measure_replays(session, name, least, gauge)
    if seconds < least:
        raise SideFailed(
            Status.IMPLAUSIBLE_TIME,
            f"a call takes {seconds_when_timed * 1e6:.1f} us where it was timed and {seconds * 1e6:.1f} us in the "
            "replays whose energy is read",
            name,
        )
    if watts is None:
        raise MachineFailed("The GPU's energy counter stands still; judge again, or start by `--objective time`.")
    if name == SOLUTION:
        timing.grade_timed_call(session, samples, SOLUTION, session.pick_slot())
    return watts * seconds


def measure_replays(session: Session, name: str, seconds: float, gauge: Gauge) -> tuple[float | None, float]:
    """Replay a side's captured block while its power is read.

    Args:
        session: has captured the side's block.
        name: the side.
        seconds: least time of a call, from which the number of replays follows.
        gauge: reads the GPU.

    Returns:
        Watts, or None if the counter made too few steps; and the seconds of a call by the grader's clock.
    """
    watts: list[float | None] = []
    duration = gate_rules.ENERGY_LEAD_SECONDS + gate_rules.ENERGY_WINDOW_SECONDS + gate_rules.ENERGY_MARGIN_SECONDS
    times = math.ceil(duration / (seconds * session.slots))
    started = time.monotonic()
    session.replay_block(name, times, lambda: watts.append(mean_watts(gauge)))
    return watts[0], (time.monotonic() - started) / (times * session.slots)


def mean_watts(gauge: Gauge) -> float | None:
    """Return the mean power between the first and the last step of the counter; None if there are too few."""
    time.sleep(gate_rules.ENERGY_LEAD_SECONDS)
    steps: list[tuple[float, float]] = []
    last, end = gauge.joules(), time.monotonic() + gate_rules.ENERGY_WINDOW_SECONDS
    while (moment := time.monotonic()) < end:
        value = gauge.joules()
        if value is not None and value != last:
            steps.append((moment, value))
            last = value
        time.sleep(_POLL_SECONDS)
    if len(steps) < gate_rules.ENERGY_MIN_STEPS:
        return None
    (start, before), (stop, after) = steps[0], steps[-1]
    return (after - before) / (stop - start)
