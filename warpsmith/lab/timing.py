"""Paired, interleaved timing of all sides of a workload, with the timed calls' own outputs graded."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass, field

from warpsmith.core.evaluation import BEST, REFERENCE, Comparison, Interval, Status, Timing
from warpsmith.core.roofline import Roofline
from warpsmith.lab import statistics, telemetry
from warpsmith.lab.correctness import Grade
from warpsmith.lab.session import SOLUTION, Block, Session
from warpsmith.lab.side import Failed
from warpsmith.lab.telemetry import Gauge, Reading

_GRADED_ELEMENTS = 1 << 20
_GRADED_SHARE = 1 / 3
_WARM_UPS = 3
_HAND_OVER_SECONDS = 30e-6
_LAUNCH_SECONDS = 1.5e-6
_CLOCK_SHARE = 0.02
_NEAREST = 3
_WANTED_APART = 0.1
_MORE_BLOCKS = 48
_LONG_SECONDS = 0.01
_LONG_BLOCKS = 8
_STEADY_SHARE = 1 / 3
_BATCHED = 3.0
_ALONE_SECONDS = 50e-6
_MORE_ALONE = 10


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


@dataclass
class Samples:
    """Paired times of one workload: position by position the sides had the same inputs."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to times of a call."""
    blocks: dict[str, list[Block]] = field(default_factory=lambda: defaultdict(list))
    """Side to its blocks, those that were run for the clocks alone among them."""
    grades: list[Grade] = field(default_factory=list)
    """Grades of the solution's timed calls."""
    joules: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to readings of a call's energy, where that decides."""
    readings: list[Reading] = field(default_factory=list)
    """The GPU's state around the blocks."""
    eager: dict[str, str] = field(default_factory=dict)
    """Side to why its block could not be captured; then all sides are launched call by call."""
    slots: int = 1
    """Calls in a block."""
    cold: bool = True
    """Whether a block's tensors are at least twice the L2 cache."""
    dropped: int = 0
    """Rounds left out because the clock was low."""


def run(
    session: Session, samples: Samples, budget: Budget, gauge: Gauge | None = None, *, graphs: bool = True
) -> None:
    """Add one batch of rounds to `samples`; without `graphs` calls are launched one by one wherever they run.

    Raises:
        Failed: a side fails; the solution's timed output is wrong, or its clocks disagree.
    """
    samples.eager |= session.capture() if graphs else dict.fromkeys(session.sides, "it was not asked to be one")
    samples.slots, samples.cold = session.slots, session.cold
    for _ in range(_WARM_UPS):
        session.fill(quick=True)
        for name in session.order():
            session.timed(name)
    started, rounds = time.monotonic(), 0
    clocks: list[int] = []
    while rounds < budget.rounds or not _enough(samples, budget, rounds, time.monotonic() - started):
        clocks += _round(session, samples, gauge)
        rounds += 1
    _drop(samples, clocks, rounds)
    if SOLUTION in session.sides and session.device != "cpu":
        _clocks_agree(session, samples)
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
    seconds = min(session.alone(SOLUTION) for _ in range(2))
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


def _clocks_agree(session: Session, samples: Samples) -> None:
    """What the grader's clock sees beyond the events is hand-over: for the solution as for the reference.

    More blocks are run while that seems not to be so or is unclear: a disturbance passes, hidden work does not.
    Two processes of one machine can differ for good, by where they run: that does not grow with the replays of a
    block, which hidden work does.
    """
    if REFERENCE not in session.sides:
        return
    for _ in range(_MORE_BLOCKS):
        narrow = _apart(samples) <= _WANTED_APART * _block_seconds(samples)
        if narrow and _excess(samples) <= _slack(samples):
            return
        session.fill(quick=True)
        for name in session.order():
            if name in (SOLUTION, REFERENCE):
                samples.blocks[name].append(session.timed(name, fetch=True))
    if _excess(samples) > _slack(samples) and not _steady(session, samples):
        raise Failed(
            Status.IMPLAUSIBLE_TIME,
            f"events say {_block_seconds(samples) * 1e6:.0f} us a block of {samples.slots} calls; the grader's "
            f"clock sees {_hand_over(samples, SOLUTION) * 1e6:.0f} us more, where it sees "
            f"{_hand_over(samples, REFERENCE) * 1e6:.0f} us more for the reference",
        )


def _steady(session: Session, samples: Samples) -> bool:
    """Whether what only the grader's clock sees is a moderate part of a block and does not grow with replays."""
    block = _block_seconds(samples)
    if not session.graphs or _excess(samples) > _slack(samples) + _STEADY_SHARE * block:
        return False
    times = math.ceil(_LONG_SECONDS / block) + 1
    unseen = []
    for _ in range(_LONG_BLOCKS):
        session.fill(quick=True)
        unseen.append(session.timed(SOLUTION, fetch=True, times=times).unseen)
    return min(unseen) - _hand_over(samples, SOLUTION) <= _CLOCK_SHARE * block * (times - 1)


def _block_seconds(samples: Samples) -> float:
    """A block of the solution by the events."""
    return statistics.median(samples.seconds[SOLUTION]) * samples.slots


def _excess(samples: Samples) -> float:
    """Seconds a block that the grader's clock saw beyond the events, more than for the reference."""
    return _hand_over(samples, SOLUTION) - _hand_over(samples, REFERENCE)


def _hand_over(samples: Samples, name: str) -> float:
    """The least that the grader's clock saw beyond the events, of the blocks that the median time rests on.

    Disturbances only lengthen it. Work that is hidden from the events lengthens it in every block that they
    make look fast.
    """
    return _nearest(samples, name)[0]


def _nearest(samples: Samples, name: str) -> list[float]:
    middle = statistics.median(samples.seconds[name])
    return sorted(block.unseen for block in samples.blocks[name] if block.seconds <= middle)[:_NEAREST]


def _slack(samples: Samples) -> float:
    """Seconds a block by which the two clocks may differ: how far the least disturbed blocks lie apart, the
    hand-over's own unsteadiness, the host's cost of one more launch a call, and a share of the block."""
    share = _CLOCK_SHARE * _block_seconds(samples)
    return _apart(samples) + share + _HAND_OVER_SECONDS + _LAUNCH_SECONDS * samples.slots


def _apart(samples: Samples) -> float:
    """Twice how far the least disturbed blocks lie apart: the part of the slack that more blocks make less."""
    nearest = (_nearest(samples, name) for name in (SOLUTION, REFERENCE))
    return 2 * max(values[-1] - values[0] for values in nearest)


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
        parent_seconds=_parent_seconds(samples) if two_clocks else middle,
        clock_slack=_slack(samples) / (middle * samples.slots) if two_clocks else None,
        cold=samples.cold if on_gpu else None,
        telemetry=telemetry.summary(samples.readings, samples.dropped),
        comparisons=comparisons,
        floor_seconds=roofline.floor_seconds,
        ceiling_share=roofline.share(middle),
        bandwidth=roofline.work.bytes / middle,
        rate=roofline.work.flops / middle,
    )


def _parent_seconds(samples: Samples) -> float:
    """The events' time a call with what the grader's clock saw beyond it, less what it saw of the reference."""
    told = statistics.median(samples.seconds[SOLUTION])
    return max(told + _excess(samples) / samples.slots, told / 2)


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
