"""Energy of a call, with a scripted counter and a scripted clock."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import BEST, Energy, Status
from warpsmith.errors import MachineFailed
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.race import race_energy
from warpsmith.lab.timing import energy
from warpsmith.lab.timing import session as sessions
from warpsmith.lab.timing.samples import Samples
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed
from warpsmith.lab.workers.worker import Worker


class Script:
    """A clock that only sleeping moves, and a counter that moves in steps of 50 ms."""

    def __init__(self, watts: float, step: float = 0.05, counts: bool = True) -> None:
        self.now, self.watts, self.step, self.counts = 0.0, watts, step, counts
        self.busy: threading.Event | None = None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert self.busy is None or self.busy.wait(2)  # no reading starts before a call is launched
        self.now += seconds

    def joules(self) -> float | None:
        return 1e4 + self.watts * self.step * int(self.now / self.step) if self.counts else None


class Session:
    """A session that replays for as long as the counter is read."""

    slots = 8

    def __init__(self, busy: threading.Event | None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.busy = busy

    def replay_block(self, name, times, meanwhile):
        self.asked.append((name, times))
        meanwhile()

    def launch_blocks(self, name, more):
        while more():
            self.asked.append((name, 1))
            self.busy.set()


@pytest.fixture
def measured(monkeypatch):
    """`measured(script)`: joules of a call of 100 us, and the calls that the session got."""

    def run(script, mode="graph"):
        monkeypatch.setattr(energy, "time", SimpleNamespace(monotonic=script.monotonic, sleep=script.sleep))
        script.busy = threading.Event() if mode == "eager" else None
        session = Session(script.busy)
        return race_energy.joules_per_call(session, "reference", 1e-4, script, mode), session.asked

    return run


def test_power_between_the_counters_steps_times_the_time_of_a_call(measured):
    joules, asked = measured(Script(watts=600.0))
    assert joules == pytest.approx(0.06, rel=0.005)
    assert asked == [("reference", 2000)]  # 1.6 s of blocks of 8 calls


def test_calls_that_no_graph_holds_are_launched_until_the_counter_was_read(measured):
    joules, asked = measured(Script(watts=500.0), mode="eager")
    assert joules == pytest.approx(0.05, rel=0.005)
    assert set(asked) == {("reference", 1)}  # one by one, not replayed
    assert measured(Script(watts=600.0, counts=False), mode="eager") == (None, [])


def test_it_is_none_where_the_counter_is_missing_or_too_coarse(measured):
    assert measured(Script(watts=600.0, counts=False)) == (None, [])
    assert measured(Script(watts=600.0, step=0.4))[0] is None


def test_a_side_replays_its_graph_while_the_counter_is_read():
    told: list[object] = []
    side = SimpleNamespace(
        resume=lambda: told.append("go on"),
        tell=lambda message: told.append(message["times"]),
        answer=lambda doing: told.append(doing),
        pause=lambda: told.append("stop"),
    )
    session = object.__new__(sessions.Session)
    session.sides, session.slots, session._delivered = {"reference": side}, 2, {}
    session.replay_block("reference", 40, lambda: told.append("read"))
    assert told == ["go on", 40, "read", "block", "stop"]


def test_a_worker_replays_as_often_as_it_is_told():
    worker, replays = Worker(), []
    event = SimpleNamespace(record=lambda: None, elapsed_time=lambda end: 4.0)
    worker.event = lambda enable_timing: event
    worker.tensors.graph = (SimpleNamespace(replay=lambda: replays.append(1)), [])
    assert worker.block({"graph": True, "slots": [0, 1], "times": 3}) == {"seconds": pytest.approx(4e-3)}
    assert len(replays) == 3
    worker.block({"graph": True, "slots": [0, 1]})
    assert len(replays) == 4


class Rivals:
    """Two sides with scripted seconds per call and watts while they are replayed."""

    slots, cold = 8, True

    def __init__(self, script, seconds, watts, whys=None, status=Status.PASSED):
        self.sides, self.order, self.graded_calls = seconds, [], 0
        self.script, self.watts, self.whys, self.status = script, watts, whys or {}, status

    def capture_graphs(self):
        return self.whys

    def fill_inputs(self, quick):
        assert quick

    def pick_slot(self):
        return 0

    def truth(self, slot):
        return None

    def grade_last_call(self, name, slot, truth):
        assert self.order[-1] == name == SOLUTION  # of the replays that were just read
        self.graded_calls += 1
        return Grade(self.status, 0.1, 0.1, detail="y[0]")

    def replay_block(self, name, times, meanwhile):
        self.order.append(name)
        ends = self.script.now + times * self.slots * self.sides[name]
        self.script.watts = self.watts[name]
        meanwhile()
        self.script.now = max(self.script.now, ends)


TIMED = {SOLUTION: 1e-4, BEST: 1.2e-4}
WATTS = {SOLUTION: 500.0, BEST: 600.0}


@pytest.fixture
def weighed(monkeypatch):
    """`weighed(seconds=..., ...)`: the samples after a batch of readings, and the session."""

    def run(seconds=TIMED, cold=True, step=0.05, **changes):
        script = Script(watts=0.0, step=step)
        monkeypatch.setattr(energy, "time", SimpleNamespace(monotonic=script.monotonic, sleep=script.sleep))
        session, samples = Rivals(script, seconds, WATTS, **changes), Samples()
        session.cold = cold
        for name in seconds:
            samples.seconds[name] = [TIMED[name]] * 3
        energy.read_energy(session, samples, script)
        return samples, session

    return run


def test_sides_are_read_in_turns_that_turn_round(weighed):
    samples, session = weighed()
    assert session.order == [SOLUTION, BEST, BEST, SOLUTION] * (gate_rules.ENERGY_PAIRS // 2)
    assert {name: len(found) for name, found in samples.joules.items()} == {SOLUTION: 6, BEST: 6}
    assert session.graded_calls == len(samples.grades) == gate_rules.ENERGY_PAIRS


def test_a_call_costs_the_power_times_what_it_took_in_the_replays(weighed):
    slower = {SOLUTION: 1.1e-4, BEST: 1.2e-4}  # slower than when timed, because the board cannot hold the clocks
    joules = weighed(slower)[0].joules
    assert joules[SOLUTION] == pytest.approx([500 * 1.1e-4] * 6, rel=0.01)
    assert joules[BEST] == pytest.approx([600 * 1.2e-4] * 6, rel=0.01)


def test_a_first_version_is_read_alone(weighed):
    samples, session = weighed({SOLUTION: 1e-4})
    assert session.order == [SOLUTION] * gate_rules.ENERGY_PAIRS
    found = energy.summarize_energy({"small": samples.joules})
    assert (found.workloads["small"].readings, found.aggregate, found.floor) == (6, None, None)
    assert found.workloads["small"].best_joules is None


@pytest.mark.parametrize(("share", "cold", "refused"), [(0.9, True, False), (0.7, True, True), (0.2, True, True),
                                                       (0.7, False, False), (0.4, False, True)])  # fmt: skip
@pytest.mark.parametrize("name", [SOLUTION, BEST])
def test_replays_that_are_much_quicker_than_the_timed_calls_are_no_replays(weighed, name, share, cold, refused):
    seconds = TIMED | {name: share * TIMED[name]}
    if not refused:
        assert weighed(seconds, cold)[0].joules[name] == pytest.approx([WATTS[name] * seconds[name]] * 6, rel=0.01)
        return
    with pytest.raises(SideFailed) as caught:
        weighed(seconds, cold)
    assert (caught.value.status, caught.value.side) == (Status.IMPLAUSIBLE_TIME, name)


def test_what_is_replayed_is_graded(weighed):
    with pytest.raises(SideFailed) as caught:
        weighed(status=Status.INCORRECT_NUMERICAL)
    assert caught.value.status is Status.INCORRECT_NUMERICAL


def test_a_side_that_no_graph_holds_is_named(weighed):
    with pytest.raises(SideFailed, match=r"no CUDA graph holds it \(it waits\)") as caught:
        weighed(whys={BEST: "it waits"})
    assert (caught.value.status, caught.value.side) == (Status.RUNTIME_ERROR, BEST)


def test_a_counter_that_stands_still_is_the_machines_fault(weighed):
    with pytest.raises(MachineFailed, match="stands still"):
        weighed(step=0.4)


def test_savings_are_paired_and_the_floor_is_the_best_one_against_itself():
    readings = {
        "small": {SOLUTION: [1.0] * 4, BEST: [1.21, 1.21, 1.21, 1.21]},
        "large": {SOLUTION: [2.0, 2.2, 2.0, 2.2], BEST: [2.0, 2.2, 2.0, 2.2]},  # a drift that both have
    }
    found = energy.summarize_energy(readings)
    assert found.aggregate.against == BEST
    assert found.aggregate.speedup == pytest.approx(1.1)
    assert (found.aggregate.worst_workload, found.aggregate.worst) == ("large", pytest.approx(1.0))
    small = found.workloads["small"]
    assert (small.joules, small.best_joules, small.saving) == (1.0, 1.21, pytest.approx(1.21))
    assert small.interval.low == pytest.approx(1.21)
    assert found.floor == pytest.approx(1.1**0.5 - 1)  # 2.0 beside 2.2 twice, and no difference at the other


def test_no_floor_is_believed_to_be_nothing():
    found = energy.summarize_energy({"small": {SOLUTION: [1.0] * 4, BEST: [1.1] * 4}})
    assert found.floor == 0.002


@pytest.mark.parametrize(("why", "joules", "says"), [
    ("no GPU", None, "no energy counter to read: no GPU"),
    ("", None, "its driver does not count joules"),
    ("", 12.5, None),
])  # fmt: skip
def test_a_machine_says_why_it_cannot_tell_joules(monkeypatch, why, joules, says):
    monkeypatch.setattr(energy.identity, "identify_machine", lambda target: SimpleNamespace(uuid="GPU-1"))
    monkeypatch.setattr(energy, "Gauge", lambda uuid: SimpleNamespace(unavailable=why, joules=lambda: joules))
    found = energy.missing_energy_counter(SimpleNamespace(id="h200"))
    assert found is None if says is None else says in found


def test_a_mean_has_a_floor():
    with pytest.raises(ValueError, match="go together"):
        Energy(workloads={}, floor=0.01)
