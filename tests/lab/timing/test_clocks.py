"""Clock check against scripted sides: hidden work is refused, a busy host is not."""

from __future__ import annotations

import random

import pytest
from scripted_timing import ScriptedSession, time_session

from warpsmith.core.evaluation import REFERENCE, Status
from warpsmith.lab.timing import clocks
from warpsmith.lab.timing.answers import TimedBlock
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed


def test_the_graders_clock_must_see_what_the_events_tell() -> None:
    honest = ScriptedSession({SOLUTION: 1e-4, REFERENCE: 2e-4}, {SOLUTION: 2e-4, REFERENCE: 2e-4})
    assert time_session(honest).seconds[SOLUTION]
    hiding = ScriptedSession({SOLUTION: 1e-4, REFERENCE: 2e-4}, {SOLUTION: 9e-4, REFERENCE: 2e-4})
    with pytest.raises(SideFailed, match="the grader's clock sees") as caught:
        time_session(hiding)
    assert caught.value.status is Status.IMPLAUSIBLE_TIME


def test_a_disturbance_passes_and_more_blocks_show_it() -> None:
    bench = ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}, {SOLUTION: 9e-4, REFERENCE: 2e-4}, jitter=1e-4)
    calm = bench.time_block
    calls = iter(range(10_000))

    def timed(name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        block = calm(name, fetch=fetch, times=times)
        return block._replace(unseen=2e-4) if next(calls) > 40 else block

    bench.time_block = timed  # type: ignore[method-assign]
    samples = time_session(bench)
    assert len(samples.blocks[SOLUTION]) > len(samples.seconds[SOLUTION])


def slower_by(seconds: float, **more: object) -> ScriptedSession:
    """A solution with blocks of 1.6 ms whose hand-over takes longer than the reference's."""
    unseen = {SOLUTION: 2e-4 + seconds, REFERENCE: 2e-4}
    return ScriptedSession({SOLUTION: 1e-4, REFERENCE: 1e-4}, unseen, jitter=1e-4, **more)  # type: ignore[arg-type]


def test_a_process_that_answers_late_hides_nothing_where_more_replays_take_no_longer_to_answer() -> None:
    assert time_session(slower_by(4e-4)).seconds[SOLUTION]


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
def test_what_could_be_hidden_work_is_refused(bench: ScriptedSession) -> None:
    with pytest.raises(SideFailed, match="the grader's clock sees"):
        time_session(bench)


def test_the_slack_of_the_clocks_is_a_few_percent_of_a_long_block() -> None:
    samples = time_session(ScriptedSession({SOLUTION: 1e-3, REFERENCE: 1e-3}, {SOLUTION: 2e-4, REFERENCE: 2e-4}))
    assert 0.02 < clocks.clock_slack(samples) < 0.04


class BusyHost(ScriptedSession):
    """A host that stretches a hand-over of 0.2 ms by up to 0.3 ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chance_of_load = random.Random(5)

    def time_block(self, name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        block = super().time_block(name, fetch=fetch, times=times)
        return block._replace(unseen=block.unseen + 3e-4 * self.chance_of_load.random())


def busy(late: float = 0.0, **more: object) -> BusyHost:
    """Blocks of 0.8 ms; the grader's clock sees the solution's longer by `late`, however often they are
    replayed."""
    unseen = {SOLUTION: 2e-4 + late, REFERENCE: 2e-4}
    return BusyHost({SOLUTION: 5e-5, REFERENCE: 5e-5}, unseen, jitter=1e-4, **more)  # type: ignore[arg-type]


def test_on_a_busy_host_replays_tell_and_little_is_run_for_them() -> None:
    samples = time_session(busy())
    assert clocks._allowed_difference(samples) / samples.block_seconds > 0.1, "single blocks do not tell enough"
    assert clocks.clock_slack(samples) < 0.06
    assert len(samples.blocks[SOLUTION]) == len(samples.seconds[SOLUTION])
    assert samples.replays is not None
    assert samples.replays.times == 39
    assert clocks.grader_seconds(samples) == pytest.approx(5e-5, rel=0.06)


@pytest.mark.parametrize("share", [0.06, 0.15])
def test_on_a_busy_host_a_small_lie_shows_too(share: float) -> None:
    with pytest.raises(SideFailed, match=r"us more for 39 replays"):
        time_session(busy(hidden=share * 8e-4))


def test_what_is_hidden_of_single_blocks_alone_has_a_bound_that_no_noise_widens() -> None:
    assert time_session(busy(late=2e-4)).replays is not None
    with pytest.raises(SideFailed, match="the grader's clock sees"):
        time_session(busy(late=4.5e-4))


def test_an_earlier_process_vouches_for_no_later_one() -> None:
    bench = busy()
    samples = time_session(bench)
    bench.hidden = 2e-4
    with pytest.raises(SideFailed, match="the grader's clock sees"):
        clocks.check_clocks(bench, samples)  # type: ignore[arg-type]


def test_a_replay_that_was_disturbed_is_made_again() -> None:
    bench = busy()
    calm, long = bench.time_block, []

    def timed(name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        block = calm(name, fetch=fetch, times=times)
        long.extend([times] if times > 1 else [])
        return block._replace(unseen=5e-3) if times > 1 and len(long) < 5 else block

    bench.time_block = timed  # type: ignore[method-assign]
    time_session(bench)
    assert 5 <= len(long) < 20


class SlowingHost(BusyHost):
    """A host on which all answers take 0.9 ms longer after the rounds, except those of a spared side."""

    spared: str = ""
    answers = 0

    def time_block(self, name: str, *, fetch: bool = False, times: int = 1) -> TimedBlock:
        block = super().time_block(name, fetch=fetch, times=times)
        self.answers += 1
        slower = 9e-4 if self.answers > 22 and name != self.spared else 0.0
        return block._replace(unseen=block.unseen + slower)


def slowing(**more: object) -> SlowingHost:
    unseen = {SOLUTION: 2e-4, REFERENCE: 2e-4}
    return SlowingHost({SOLUTION: 5e-5, REFERENCE: 5e-5}, unseen, jitter=1e-4, **more)  # type: ignore[arg-type]


def test_a_host_that_becomes_slower_between_single_blocks_and_replays_refuses_nobody() -> None:
    samples = time_session(slowing())
    assert samples.replays is not None
    assert clocks.grader_seconds(samples) == pytest.approx(5e-5, rel=0.06)


def test_what_is_hidden_shows_on_a_host_that_becomes_slower_too() -> None:
    with pytest.raises(SideFailed, match=r"us more for 39 replays"):
        time_session(slowing(hidden=0.15 * 8e-4))


def test_a_process_that_becomes_slower_alone_is_refused() -> None:
    bench = slowing()
    bench.spared = REFERENCE
    with pytest.raises(SideFailed, match="the grader's clock sees"):
        time_session(bench)
