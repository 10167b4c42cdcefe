"""Timing against scripted sides: when rounds stop, whose clock is believed, what is left out."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
import torch

from warpsmith.core.definition import Work
from warpsmith.core.evaluation import BEST, REFERENCE, Status
from warpsmith.core.roofline import Rate, Roofline
from warpsmith.lab import timing
from warpsmith.lab.correctness import Grade, Truth
from warpsmith.lab.session import SOLUTION, Block
from warpsmith.lab.side import Failed
from warpsmith.lab.telemetry import Reading
from warpsmith.lab.timing import Budget, Samples


@dataclass
class Bench:
    """A session whose sides take the times that it is told."""

    seconds: dict[str, float]
    unseen: dict[str, float] = field(default_factory=dict)
    alone_seconds: float = 1e-4
    device: str = "cuda"
    slots: int = 16
    jitter: float = 0.01
    wrong_at: int = -1
    cold = True
    graphs: bool = True
    hidden: float = 0.0
    """Seconds a replay that only the grader's clock sees."""
    failures: dict[str, str] = field(default_factory=dict)
    single_calls: list[float] = field(default_factory=list)
    """Seconds of the first single calls; the others take `alone_seconds`."""
    drawn: list[dict[str, torch.Tensor]] = field(default_factory=lambda: [{"x": torch.zeros(4)}])
    calls = 0

    def __post_init__(self) -> None:
        self._wobble = itertools.cycle((1 - self.jitter, 1.0, 1 + self.jitter))

    @property
    def sides(self) -> dict[str, object]:
        return dict.fromkeys(self.seconds)

    def capture(self) -> dict[str, str]:
        return self.failures

    def fill(self, *, quick: bool = False) -> None:
        assert quick

    def order(self) -> list[str]:
        return list(self.seconds)

    def timed(self, name: str, *, fetch: bool = False, times: int = 1) -> Block:
        assert fetch is False or name in (SOLUTION, REFERENCE)
        hidden = self.hidden * times if name == SOLUTION else 0.0
        unseen = self.unseen.get(name, 1e-4) * next(self._wobble)
        return Block(self.seconds[name] * next(self._wobble), unseen + hidden)

    def pick(self) -> int:
        return 0

    def chance(self, share: float) -> bool:
        return True

    def truth(self, slot: int) -> Truth:
        return Truth({}, {}, {}, {})

    def graded(self, name: str, slot: int, truth: Truth) -> Grade:
        self.calls += 1
        wrong = self.calls == self.wrong_at
        return Grade(
            Status.INCORRECT_NUMERICAL if wrong else Status.PASSED, 0.1, 0.0, detail="off" if wrong else ""
        )

    def alone(self, name: str) -> float:
        return self.single_calls.pop(0) if self.single_calls else self.alone_seconds


def race(bench: Bench, budget: Budget = Budget(rounds=8, most=30, seconds=5), gauge: object = None) -> Samples:  # noqa: B008
    samples = Samples()
    timing.run(bench, samples, budget, gauge)  # type: ignore[arg-type]
    return samples


def test_rounds_stop_when_the_interval_is_narrow() -> None:
    steady = race(Bench({SOLUTION: 1e-4, BEST: 2e-4}, jitter=1e-4))
    assert len(steady.seconds[SOLUTION]) == 8
    noisy = race(Bench({SOLUTION: 1e-4, BEST: 2e-4}, jitter=0.2))
    assert len(noisy.seconds[SOLUTION]) == 30


def test_rounds_stop_at_the_cap_of_time() -> None:
    samples = race(Bench({SOLUTION: 1e-4, BEST: 2e-4}, jitter=0.2), Budget(rounds=3, most=1000, seconds=0.0))
    assert len(samples.seconds[SOLUTION]) == 3


def test_the_graders_clock_must_see_what_the_events_tell() -> None:
    honest = Bench({SOLUTION: 1e-4, REFERENCE: 2e-4}, {SOLUTION: 2e-4, REFERENCE: 2e-4})
    assert race(honest).seconds[SOLUTION]
    hiding = Bench({SOLUTION: 1e-4, REFERENCE: 2e-4}, {SOLUTION: 9e-4, REFERENCE: 2e-4})
    with pytest.raises(Failed, match="the grader's clock sees") as caught:
        race(hiding)
    assert caught.value.status is Status.IMPLAUSIBLE_TIME


def test_a_busy_host_may_delay_some_single_calls() -> None:
    delayed = Bench({SOLUTION: 1e-4, REFERENCE: 2e-4}, alone_seconds=5e-4, single_calls=[5e-4] * 6 + [1e-4])
    assert race(delayed).seconds[SOLUTION]


def test_a_disturbance_passes_and_more_blocks_show_it() -> None:
    bench = Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}, {SOLUTION: 9e-4, REFERENCE: 2e-4}, jitter=1e-4)
    calm = bench.timed
    calls = iter(range(10_000))

    def timed(name: str, *, fetch: bool = False, times: int = 1) -> Block:
        block = calm(name, fetch=fetch, times=times)
        return block._replace(unseen=2e-4) if next(calls) > 40 else block

    bench.timed = timed  # type: ignore[method-assign]
    samples = race(bench)
    assert len(samples.blocks[SOLUTION]) > len(samples.seconds[SOLUTION])


def slower_by(seconds: float, **more: object) -> Bench:
    """A solution whose hand-over takes longer than the reference's, of blocks of 1.6 ms."""
    unseen = {SOLUTION: 2e-4 + seconds, REFERENCE: 2e-4}
    return Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}, unseen, jitter=1e-4, **more)  # type: ignore[arg-type]


def test_a_process_that_answers_late_hides_nothing_where_more_replays_take_no_longer_to_answer() -> None:
    assert race(slower_by(4e-4)).seconds[SOLUTION]


@pytest.mark.parametrize(
    "bench",
    [
        slower_by(4e-4, graphs=False),
        slower_by(8e-4),
        slower_by(1e-4, hidden=2e-4),
        slower_by(0.0, hidden=4e-4),
    ],
    ids=["no graph", "half a block", "some of it hidden", "all of it hidden"],
)
def test_what_could_be_hidden_work_is_refused(bench: Bench) -> None:
    with pytest.raises(Failed, match="the grader's clock sees"):
        race(bench)


def test_the_slack_of_the_clocks_is_a_few_percent_of_a_long_block() -> None:
    samples = race(Bench({SOLUTION: 1e-3, REFERENCE: 1e-3}, {SOLUTION: 2e-4, REFERENCE: 2e-4}))
    assert 0.02 < timing._slack(samples) / (1e-3 * samples.slots) < 0.04


def test_one_call_must_not_do_the_work_of_others() -> None:
    with pytest.raises(Failed, match="one call does the work of others"):
        race(Bench({SOLUTION: 1e-5, REFERENCE: 1e-5}, alone_seconds=1.6e-4))
    race(Bench({SOLUTION: 1e-5, REFERENCE: 1e-5}, alone_seconds=6e-5))


def test_a_wrong_timed_output_stops_the_race() -> None:
    with pytest.raises(Failed, match="the output of a timed call: off"):
        race(Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}, wrong_at=5))


def test_rounds_at_a_low_clock_are_left_out_of_all_sides() -> None:
    class Gauge:
        clocks = iter([1980] * 9 + [900] * 3 + [1980] * 99)

        def read(self) -> Reading:
            return Reading(next(self.clocks), 3201, 40, 300.0, ())

    samples = race(Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}, jitter=1e-4), gauge=Gauge())
    assert samples.dropped == 1
    assert len(samples.seconds[SOLUTION]) == len(samples.seconds[REFERENCE]) == 7
    assert len(samples.blocks[SOLUTION]) == 8


def test_a_side_that_is_no_graph_is_named() -> None:
    samples = race(Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}, failures={SOLUTION: "it waits for the device"}))
    assert samples.eager == {SOLUTION: "it waits for the device"}


def test_calls_are_launched_one_by_one_where_no_graph_is_wanted() -> None:
    bench, samples = Bench({SOLUTION: 1e-4, REFERENCE: 1e-4}), Samples()
    bench.capture = lambda: pytest.fail("it was captured")  # type: ignore[method-assign]
    timing.run(bench, samples, Budget(rounds=8, most=8, seconds=5), graphs=False)  # type: ignore[arg-type]
    assert timing.summarise(samples, ROOFLINE, "cuda").clock == "events"


def test_without_the_reference_there_is_one_clock() -> None:
    alone = timing.summarise(race(Bench({SOLUTION: 1e-4, "peer": 2e-4})), ROOFLINE, "cuda")
    assert (alone.clock_slack, alone.parent_seconds, alone.clock) == (None, alone.seconds, "graph")
    both = timing.summarise(race(Bench({SOLUTION: 1e-4, REFERENCE: 2e-4})), ROOFLINE, "cuda")
    assert both.clock_slack is not None
    assert both.clock_slack > 0


ROOFLINE = Roofline(
    bandwidth=Rate(value=1e12, origin="documented", source="made up"),
    compute=None,
    work=Work(flops=1, bytes_read=1e6, bytes_written=1e6),
)
