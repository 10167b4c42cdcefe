"""Paired, interleaved timing of all sides of a workload, with the timed calls' own outputs graded."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

from warpsmith.core.evaluation import Comparison, Interval, Status, Timing
from warpsmith.core.roofline import Roofline
from warpsmith.lab import statistics
from warpsmith.lab.correctness import Grade
from warpsmith.lab.session import Session
from warpsmith.lab.side import Failed

SOLUTION = "solution"
"""The side that is judged."""

_GRADED_ELEMENTS = 1 << 20
_GRADED_SHARE = 1 / 3
_WARM_UPS = 3
_CLOCKS_AGREE = 1.5
_LAUNCH_SECONDS = 60e-6


@dataclass(frozen=True)
class Budget:
    """How long a workload is timed."""

    rounds: int = 10
    """Rounds at least; each side is timed once a round."""
    most: int = 40
    """Rounds at most."""
    seconds: float = 0.5
    """Rounds above the least are run for this long."""

    @classmethod
    def of(cls, device: str) -> Budget:
        """What suits a device: a round on a GPU holds several calls of each side."""
        return cls() if device == "cpu" else cls(rounds=6, most=20, seconds=0.15)


@dataclass
class Samples:
    """Paired times of one workload: position by position the sides had the same inputs."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Side to times."""
    grades: list[Grade] = field(default_factory=list)
    """Grades of the solution's timed calls."""
    wall: list[float] = field(default_factory=list)
    """The grader's clock over bursts of the solution, a call."""


def run(session: Session, samples: Samples, budget: Budget) -> None:
    """Add one batch of rounds to `samples`.

    Raises:
        Failed: a side fails; the solution's timed output is wrong, or its clocks disagree.
    """
    for _ in range(_WARM_UPS):
        session.fill(quick=True)
        for name in session.order():
            session.seconds(name)
    started, rounds = time.monotonic(), 0
    while rounds < budget.rounds or (rounds < budget.most and time.monotonic() - started < budget.seconds):
        _round(session, samples)
        rounds += 1
    if SOLUTION in session.sides:
        _cross_check(session, samples)


def _round(session: Session, samples: Samples) -> None:
    session.fill(quick=True)
    for name in session.order():
        samples.seconds[name] += session.seconds(name)
        if name == SOLUTION and _grade_now(session, samples):
            slot = session.pick()
            grade = session.graded(name, slot, session.truth(slot))
            samples.grades.append(grade)
            if grade.status is not Status.PASSED:
                raise Failed(grade.status, f"the output of a timed call: {grade.detail}")


def _grade_now(session: Session, samples: Samples) -> bool:
    """Every round, but a random third on the CPU where grading costs far more than the call."""
    elements = max(t.numel() for t in session.drawn[0].values()) if session.drawn[0] else 0
    if session.device != "cpu" or elements <= _GRADED_ELEMENTS or not samples.grades:
        return True
    return session.chance(_GRADED_SHARE)


def _cross_check(session: Session, samples: Samples) -> None:
    """On a GPU the grader's own clock must not see much more time than the events told."""
    if session.device == "cpu":
        samples.wall.append(statistics.median(samples.seconds[SOLUTION]))
        return
    samples.wall.append(session.wall_seconds(SOLUTION))
    told = statistics.median(samples.seconds[SOLUTION])
    if min(samples.wall) > told * _CLOCKS_AGREE + _LAUNCH_SECONDS:
        raise Failed(
            Status.IMPLAUSIBLE_TIME,
            f"events say {told * 1e6:.1f} us a call, the grader's clock {min(samples.wall) * 1e6:.1f} us",
        )


def summarise(samples: Samples, roofline: Roofline, device: str) -> Timing:
    """The record of one workload's times."""
    ours = samples.seconds[SOLUTION]
    middle = statistics.median(ours)
    comparisons = tuple(_compare(name, ours, times) for name, times in samples.seconds.items() if name != SOLUTION)
    return Timing(
        seconds=middle,
        samples=len(ours),
        spread=statistics.spread(ours),
        clock="parent" if device == "cpu" else "events",
        parent_seconds=min(samples.wall),
        comparisons=comparisons,
        floor_seconds=roofline.floor_seconds,
        ceiling_share=roofline.share(middle),
        bandwidth=roofline.work.bytes / middle,
        rate=roofline.work.flops / middle,
    )


def _compare(name: str, ours: list[float], theirs: list[float]) -> Comparison:
    speedup, interval = statistics.speedup(ours, theirs)
    return Comparison(
        against=name,
        other_seconds=statistics.median(theirs),
        speedup=speedup,
        interval=Interval(low=interval.low, high=interval.high),
        pairs=len(ours),
    )
