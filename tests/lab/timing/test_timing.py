"""Timing of scripted sides: the end of the rounds, the clock that counts, and rounds that are left out."""

from __future__ import annotations

import pytest
from scripted_timing import ScriptedSession, time_session

from warpsmith.core.arithmetic.roofline import Rate, Roofline
from warpsmith.core.definition import Work
from warpsmith.core.evaluation import BEST, REFERENCE
from warpsmith.lab.machine.telemetry import GpuReading
from warpsmith.lab.timing import timing
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import SideFailed


def test_rounds_stop_when_the_interval_is_narrow() -> None:
    steady = time_session(ScriptedSession({SOLUTION: 1e-4, BEST: 2e-4}, jitter=1e-4))
    assert len(steady.seconds[SOLUTION]) == 8
    noisy = time_session(ScriptedSession({SOLUTION: 1e-4, BEST: 2e-4}, jitter=0.2))
    assert len(noisy.seconds[SOLUTION]) == 30


def test_rounds_stop_at_the_cap_of_time() -> None:
    samples = time_session(
        ScriptedSession({SOLUTION: 1e-4, BEST: 2e-4}, jitter=0.2), TimingBudget(rounds=3, most=1000, seconds=0.0)
    )
    assert len(samples.seconds[SOLUTION]) == 3


def test_a_busy_host_may_delay_some_single_calls() -> None:
    delayed = ScriptedSession(
        {SOLUTION: 1e-4, REFERENCE: 2e-4}, alone_seconds=5e-4, single_calls=[5e-4] * 6 + [1e-4]
    )
    assert time_session(delayed).seconds[SOLUTION]


def test_one_call_must_not_do_the_work_of_others() -> None:
    with pytest.raises(SideFailed, match="one call does the work of others"):
        time_session(ScriptedSession({SOLUTION: 1e-5, REFERENCE: 1e-5}, alone_seconds=1.6e-4))
    time_session(ScriptedSession({SOLUTION: 1e-5, REFERENCE: 1e-5}, alone_seconds=6e-5))


def test_a_call_is_no_shorter_than_an_empty_message() -> None:
    """A version that answers the grader's socket itself skips the worker's steps."""
    seconds = {SOLUTION: 4e-5, REFERENCE: 3e-4}
    with pytest.raises(SideFailed, match="empty message"):
        time_session(ScriptedSession(seconds, device="cpu", hand_over=2e-4, jitter=1e-3))
    time_session(ScriptedSession(seconds, device="cpu", hand_over=4e-5, jitter=1e-3))
    time_session(ScriptedSession({SOLUTION: 4e-5}, device="cpu", hand_over=2e-4, jitter=1e-3))


def test_a_wrong_timed_output_stops_the_race() -> None:
    with pytest.raises(SideFailed, match="the output of a timed call: off"):
        time_session(ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}, wrong_at=5))


def test_where_not_every_slot_was_called_none_is_graded() -> None:
    samples = time_session(ScriptedSession({"draft": 1e-4, BEST: 1e-2}, short=(BEST,), wrong_at=1))
    assert len(samples.seconds[BEST]) == 30


def test_rounds_at_a_low_clock_are_left_out_of_all_sides() -> None:
    class Gauge:
        clocks = iter([1980] * 9 + [900] * 3 + [1980] * 99)

        def read(self) -> GpuReading:
            return GpuReading(next(self.clocks), 3201, 40, 300.0, ())

    samples = time_session(ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}, jitter=1e-4), gauge=Gauge())
    assert samples.dropped == 1
    assert len(samples.seconds[SOLUTION]) == len(samples.seconds[REFERENCE]) == 7
    assert len(samples.blocks[SOLUTION]) == 8


def test_a_side_that_is_no_graph_is_named() -> None:
    samples = time_session(
        ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}, failures={SOLUTION: "it waits for the device"})
    )
    assert samples.eager == {SOLUTION: "it waits for the device"}


def test_calls_are_launched_one_by_one_where_no_graph_is_wanted() -> None:
    bench, samples = ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}), Samples()
    bench.capture_graphs = lambda: pytest.fail("it was captured")  # type: ignore[method-assign]
    timing.time_rounds(bench, samples, TimingBudget(rounds=8, most=8, seconds=5), graphs=False)  # type: ignore[arg-type]
    assert timing.summarize_samples(samples, ROOFLINE, "cuda").clock == "events"


def test_without_the_reference_there_is_one_clock() -> None:
    alone = timing.summarize_samples(
        time_session(ScriptedSession({SOLUTION: 1e-4, "peer": 2e-4})), ROOFLINE, "cuda"
    )
    assert (alone.clock_slack, alone.parent_seconds, alone.clock) == (None, alone.seconds, "graph")
    both = timing.summarize_samples(
        time_session(ScriptedSession({SOLUTION: 1e-4, REFERENCE: 2e-4})), ROOFLINE, "cuda"
    )
    assert both.clock_slack is not None
    assert both.clock_slack > 0


ROOFLINE = Roofline(
    bandwidth=Rate(value=1e12, origin="documented", source="made up"),
    compute=None,
    work=Work(flops=1, bytes_read=1e6, bytes_written=1e6),
)
