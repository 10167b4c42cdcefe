"""Paired, interleaved timing of all sides of a workload, which also grades outputs of the timed calls."""

from __future__ import annotations

import time
from dataclasses import dataclass

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.roofline import Roofline
from warpsmith.core.evaluation import BEST, REFERENCE, Comparison, Interval, Status, Timing
from warpsmith.core.hardware import Clock
from warpsmith.lab.machine import telemetry
from warpsmith.lab.machine.telemetry import Gauge
from warpsmith.lab.timing import clocks, statistics
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import JUDGED, SOLUTION, Session
from warpsmith.lab.workers.side import SideFailed


@dataclass(frozen=True)
class TimingBudget:
    """Rounds and seconds for which a workload is timed."""

    rounds: int = gate_rules.MIN_ROUNDS["cpu"]
    """Rounds at least; each side is timed once per round."""
    most: int = gate_rules.MAX_ROUNDS["cpu"]
    """Rounds at most."""
    seconds: float = gate_rules.TIMING_SECONDS["cpu"]
    """Seconds after which no round beyond the least is started."""
    width: float = gate_rules.INTERVAL_WIDTH["cpu"]
    """Rounds stop early where half of the speedup's interval is no wider than this share."""

    @classmethod
    def for_device(cls, device: str) -> TimingBudget:
        """Return the budget for a device: a round on a GPU is a block of several calls per side."""
        return cls(
            rounds=gate_rules.MIN_ROUNDS[device],
            most=gate_rules.MAX_ROUNDS[device],
            seconds=gate_rules.TIMING_SECONDS[device],
            width=gate_rules.INTERVAL_WIDTH[device],
        )


def time_rounds(
    session: Session, samples: Samples, budget: TimingBudget, gauge: Gauge | None = None, *, graphs: bool = True
) -> None:
    """Add one batch of rounds to `samples`; without `graphs` all sides are launched call by call.

    Raises:
        SideFailed: a side fails; the solution's timed output is wrong, or its clocks disagree.
    """
    not_requested = "no graph was requested"
    samples.eager |= session.capture_graphs() if graphs else dict.fromkeys(session.sides, not_requested)
    samples.slots, samples.cold = session.slots, session.cold
    session.fill_inputs(quick=True)
    for _ in range(gate_rules.WARM_UP_ROUNDS):
        for name in session.shuffled_sides():
            session.time_block(name)
    started, rounds = time.monotonic(), 0
    lowest: list[int] = []
    while rounds < budget.rounds or not _is_enough(samples, budget, rounds, time.monotonic() - started):
        lowest += _time_round(session, samples, gauge)
        rounds += 1
    _drop_slow_rounds(samples, lowest, rounds)
    if SOLUTION in session.sides and session.device == "cpu":
        _check_answer_time(session, samples)
    if SOLUTION in session.sides and session.device != "cpu":
        clocks.check_clocks(session, samples)
        for name in session.shuffled_sides():  # last, because it captures another block
            if name in JUDGED:
                _check_single_call(session, samples, name)


def _is_enough(samples: Samples, budget: TimingBudget, rounds: int, seconds: float) -> bool:
    """Return True if the interval is narrow enough or the budget is spent."""
    if rounds >= budget.most or seconds >= budget.seconds:
        return True
    against = next((name for name in (BEST, REFERENCE) if name in samples.seconds), None)
    own = samples.seconds.get(SOLUTION)
    if against is None or own is None:
        return False
    return statistics.interval_half_width(own, samples.seconds[against]) <= budget.width


def _time_round(session: Session, samples: Samples, gauge: Gauge | None) -> list[int]:
    """Time every side once; return the lowest clock of the round in MHz, or nothing if none was read."""
    session.fill_inputs(quick=True)
    slot, graded = session.pick_slot(), _grades_this_round(session, samples)
    readings = [gauge.read()] if gauge else []
    for name in session.shuffled_sides():
        block = session.time_block(name, fetch=name in (*JUDGED, REFERENCE))
        samples.seconds[name].append(block.seconds)
        samples.blocks[name].append(block)
        if gauge:
            readings.append(gauge.read())
        if name in JUDGED and graded and session.times_every_slot(name):
            grade_timed_call(session, samples, name, slot)
    valid = [reading for reading in readings if reading is not None]
    samples.readings += valid
    return [min(reading.sm for reading in valid)] if valid else []


def grade_timed_call(session: Session, samples: Samples, name: str, slot: int) -> None:
    """Grade a version's last call on a slot that no worker knows; the solution's grade joins `samples`.

    Raises:
        SideFailed: its output is wrong.
    """
    grade = session.grade_last_call(name, slot, session.truth(slot))
    if name == SOLUTION:
        samples.grades.append(grade)
    if grade.status is not Status.PASSED:
        raise SideFailed(grade.status, f"the output of a timed call: {grade.detail}", name)


def _drop_slow_rounds(samples: Samples, clocks: list[int], rounds: int) -> None:
    """Leave out the rounds of this batch in which the GPU's clock was low."""
    if len(clocks) != rounds:
        return
    low = telemetry.slow_rounds(clocks)
    for times in samples.seconds.values():
        first = len(times) - rounds
        for index in reversed(low):
            del times[first + index]
    samples.dropped += len(low)


def _grades_this_round(session: Session, samples: Samples) -> bool:
    """Return True for every round, or for a random third where grading on a CPU costs far more than the call."""
    elements = max(t.numel() for t in session.drawn[0].values()) if session.drawn[0] else 0
    if session.device != "cpu" or elements <= gate_rules.GRADED_ELEMENTS or not samples.grades:
        return True
    return session.chance(gate_rules.GRADED_SHARE)


def _check_answer_time(session: Session, samples: Samples) -> None:
    """Check that no call on a CPU is shorter than an empty message to the reference's process.

    The grader's time includes the worker's own steps, which a version may skip if it answers the grader itself.

    Raises:
        SideFailed: a call is shorter.
    """
    if REFERENCE not in session.sides:
        return
    messages = [session.time_hand_over(REFERENCE).seconds for _ in range(gate_rules.ANSWER_LOOKS)]
    seconds, least = statistics.median(samples.seconds[SOLUTION]), min(messages)
    if seconds < gate_rules.ANSWER_SHARE * least:
        raise SideFailed(
            Status.IMPLAUSIBLE_TIME,
            f"a call takes {seconds * 1e6:.0f} us, an empty message to the reference {least * 1e6:.0f} us:"
            " something else than the worker answers",
            SOLUTION,
        )


def _check_single_call(session: Session, samples: Samples, name: str) -> None:
    """Check that a block of one call is not about as long as a block of many.

    Otherwise one call does the work of others. A busy host delays single calls, so one short block is enough.
    """
    seconds_of_many = statistics.median(samples.seconds[name])
    longest = gate_rules.SINGLE_CALL_FACTOR * seconds_of_many + gate_rules.SINGLE_CALL_SECONDS
    seconds = session.time_random_slot(name)
    if samples.slots < 2 * gate_rules.SINGLE_CALL_FACTOR:
        return
    for _ in range(gate_rules.SINGLE_CALL_RETRIES):
        if seconds <= longest:
            return
        seconds = min(seconds, session.time_random_slot(name))
    if seconds > longest:
        raise SideFailed(
            Status.IMPLAUSIBLE_TIME,
            f"a single call takes {seconds * 1e6:.1f} us, {seconds_of_many * 1e6:.1f} us among {samples.slots}: "
            "one call does the work of others",
            name,
        )


def timing_clock(samples: Samples, device: str) -> Clock:
    """Return the clock that samples were taken with."""
    if device == "cpu":
        return "parent"
    return "events" if samples.eager else "graph"


def summarize_samples(samples: Samples, roofline: Roofline, device: str) -> Timing:
    """Return the record of one workload's times."""
    own = samples.seconds[SOLUTION]
    middle = statistics.median(own)
    others = {name: times for name, times in samples.seconds.items() if name != SOLUTION}
    on_gpu = device != "cpu"
    two_clocks = on_gpu and REFERENCE in samples.blocks  # not where a race has only sides that are graphs
    return Timing(
        seconds=middle,
        samples=len(own),
        spread=statistics.spread(own),
        clock=timing_clock(samples, device),
        parent_seconds=clocks.grader_seconds(samples) if two_clocks else middle,
        clock_slack=clocks.clock_slack(samples) if two_clocks else None,
        cold=samples.cold if on_gpu else None,
        telemetry=telemetry.summarize_readings(samples.readings, samples.dropped),
        comparisons=tuple(compare_times(name, own, times) for name, times in others.items()),
        floor_seconds=roofline.floor_seconds,
        ceiling_share=roofline.share(middle),
        bandwidth=roofline.work.bytes / middle,
        rate=roofline.work.flops / middle,
    )


def compare_times(name: str, own: list[float], other: list[float]) -> Comparison:
    """Return the paired comparison with the side `name`; times are in seconds."""
    speedup, interval = statistics.paired_speedup(own, other)
    return Comparison(
        against=name,
        other_seconds=statistics.median(other),
        speedup=speedup,
        interval=Interval(low=interval.low, high=interval.high),
        pairs=len(own),
    )
