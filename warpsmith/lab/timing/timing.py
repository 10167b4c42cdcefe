"""Paired, interleaved timing of all sides of a workload, with the timed calls' own outputs graded."""

from __future__ import annotations

import time
from dataclasses import dataclass

from warpsmith.core.evaluation import BEST, REFERENCE, Comparison, Interval, Status, Timing
from warpsmith.core.roofline import Roofline
from warpsmith.lab.machine import telemetry
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing import clocks, statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION, Session
from warpsmith.lab.workers.side import Failed

_GRADED_ELEMENTS = 1 << 20
_GRADED_SHARE = 1 / 3
_WARM_UPS = 3
_BATCHED = 3.0
_ALONE_SECONDS = 50e-6
_MORE_ALONE = 11


@dataclass(frozen=True)
class Budget:
    """How long a workload is timed."""

    rounds: int = 10
    """Rounds at least; each side is timed once a round."""
    most: int = 40
    """Rounds at most."""
    seconds: float = 0.5
    """Rounds above the least are run for this long at most."""
    width: float = 0.005
    """Rounds stop before that where the speedup's interval is no wider than this to either side."""

    @classmethod
    def of(cls, device: str) -> Budget:
        """What suits a device: a round on a GPU is a block of several calls of each side."""
        return cls() if device == "cpu" else cls(rounds=8, most=40, seconds=0.2, width=0.002)


def run(
    session: Session, samples: Samples, budget: Budget, gauge: Gauge | None = None, *, graphs: bool = True
) -> None:
    """Add one batch of rounds to `samples`; without `graphs` calls are launched one by one wherever they run.

    Raises:
        Failed: a side fails; the solution's timed output is wrong, or its clocks disagree.
    """
    samples.eager |= session.capture() if graphs else dict.fromkeys(session.sides, "it was not asked to be one")
    samples.slots, samples.cold = session.slots, session.cold
    session.fill(quick=True)
    for _ in range(_WARM_UPS):
        for name in session.order():
            session.timed(name)
    started, rounds = time.monotonic(), 0
    lowest: list[int] = []
    while rounds < budget.rounds or not _enough(samples, budget, rounds, time.monotonic() - started):
        lowest += _round(session, samples, gauge)
        rounds += 1
    _drop(samples, lowest, rounds)
    if SOLUTION in session.sides and session.device != "cpu":
        clocks.agree(session, samples)
        _one_call(session, samples)  # last: it captures another block


def _enough(samples: Samples, budget: Budget, rounds: int, seconds: float) -> bool:
    """Whether the interval is narrow enough, or the cap is reached."""
    if rounds >= budget.most or seconds >= budget.seconds:
        return True
    against = next((name for name in (BEST, REFERENCE) if name in samples.seconds), None)
    ours = samples.seconds.get(SOLUTION)
    if against is None or ours is None:
        return False
    return statistics.half_width(ours, samples.seconds[against]) <= budget.width


def _round(session: Session, samples: Samples, gauge: Gauge | None) -> list[int]:
    """Every side once; the lowest clock that was read, if any was."""
    session.fill(quick=True)
    readings = [gauge.read()] if gauge else []
    for name in session.order():
        block = session.timed(name, fetch=name in (SOLUTION, REFERENCE))
        samples.seconds[name].append(block.seconds)
        samples.blocks[name].append(block)
        if gauge:
            readings.append(gauge.read())
        if name == SOLUTION and _grade_now(session, samples):
            grade(session, samples)
    read = [one for one in readings if one is not None]
    samples.readings += read
    return [min(one.sm for one in read)] if read else []


def grade(session: Session, samples: Samples) -> None:
    """Add the grade of one of the solution's last calls, picked now; raises Failed where it is wrong."""
    slot = session.pick()
    found = session.graded(SOLUTION, slot, session.truth(slot))
    samples.grades.append(found)
    if found.status is not Status.PASSED:
        raise Failed(found.status, f"the output of a timed call: {found.detail}")


def _drop(samples: Samples, clocks: list[int], rounds: int) -> None:
    """Leave out the rounds of this batch in which the clock was low."""
    if len(clocks) != rounds:
        return
    low = telemetry.slow(clocks)
    for times in samples.seconds.values():
        first = len(times) - rounds
        for index in reversed(low):
            del times[first + index]
    samples.dropped += len(low)


def _grade_now(session: Session, samples: Samples) -> bool:
    """Every round, but a random third on the CPU where grading costs far more than the call."""
    elements = max(t.numel() for t in session.drawn[0].values()) if session.drawn[0] else 0
    if session.device != "cpu" or elements <= _GRADED_ELEMENTS or not samples.grades:
        return True
    return session.chance(_GRADED_SHARE)


def _one_call(session: Session, samples: Samples) -> None:
    """A block of one call must not take as long as many: else one call does the work of others.

    A busy host delays single calls, so that one which is short enough says all.
    """
    told = statistics.median(samples.seconds[SOLUTION])
    longest = _BATCHED * told + _ALONE_SECONDS
    seconds = session.alone(SOLUTION)
    if samples.slots < 2 * _BATCHED:
        return
    for _ in range(_MORE_ALONE):
        if seconds <= longest:
            return
        seconds = min(seconds, session.alone(SOLUTION))
    if seconds > longest:
        raise Failed(
            Status.IMPLAUSIBLE_TIME,
            f"a single call takes {seconds * 1e6:.1f} us, {told * 1e6:.1f} us among {samples.slots}: "
            "one call does the work of others",
        )


def summarise(samples: Samples, roofline: Roofline, device: str) -> Timing:
    """The record of one workload's times."""
    ours = samples.seconds[SOLUTION]
    middle = statistics.median(ours)
    comparisons = tuple(compare(name, ours, times) for name, times in samples.seconds.items() if name != SOLUTION)
    on_gpu = device != "cpu"
    two_clocks = on_gpu and REFERENCE in samples.blocks  # not so where a race has sides that are graphs alone
    return Timing(
        seconds=middle,
        samples=len(ours),
        spread=statistics.spread(ours),
        clock="parent" if not on_gpu else "events" if samples.eager else "graph",
        parent_seconds=clocks.parent_seconds(samples) if two_clocks else middle,
        clock_slack=clocks.slack(samples) if two_clocks else None,
        cold=samples.cold if on_gpu else None,
        telemetry=telemetry.summary(samples.readings, samples.dropped),
        comparisons=comparisons,
        floor_seconds=roofline.floor_seconds,
        ceiling_share=roofline.share(middle),
        bandwidth=roofline.work.bytes / middle,
        rate=roofline.work.flops / middle,
    )


def compare(name: str, ours: list[float], theirs: list[float]) -> Comparison:
    """The paired comparison with one other side, whose `name` it is; times in seconds."""
    speedup, interval = statistics.speedup(ours, theirs)
    return Comparison(
        against=name,
        other_seconds=statistics.median(theirs),
        speedup=speedup,
        interval=Interval(low=interval.low, high=interval.high),
        pairs=len(ours),
    )
