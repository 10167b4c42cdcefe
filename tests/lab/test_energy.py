"""Energy of a call, with the GPU's counter and the clock played by a script."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from warpsmith.lab import energy
from warpsmith.lab import session as sessions
from warpsmith.lab.worker import Worker


class Script:
    """A clock that only sleeping moves, and a counter that moves in steps of 50 ms."""

    def __init__(self, watts: float, step: float = 0.05, counts: bool = True) -> None:
        self.now, self.watts, self.step, self.counts = 0.0, watts, step, counts
        self.busy: threading.Event | None = None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert self.busy is None or self.busy.wait(2)  # nothing is read before a call was launched
        self.now += seconds

    def joules(self) -> float | None:
        return 1e4 + self.watts * self.step * int(self.now / self.step) if self.counts else None


class Session:
    """Replays for as long as it is watched."""

    slots = 8

    def __init__(self, busy: threading.Event | None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.busy = busy

    def repeated(self, name, times, meanwhile):
        self.asked.append((name, times))
        meanwhile()

    def launched(self, name, more):
        while more():
            self.asked.append((name, 1))
            self.busy.set()


@pytest.fixture
def measured(monkeypatch):
    """`measured(script)`: joules of a call of 100 us, and what the session was asked."""

    def run(script, mode="graph"):
        monkeypatch.setattr(energy, "time", SimpleNamespace(monotonic=script.monotonic, sleep=script.sleep))
        script.busy = threading.Event() if mode == "eager" else None
        session = Session(script.busy)
        return energy.a_call(session, "reference", 1e-4, script, mode), session.asked

    return run


def test_power_between_the_counters_steps_times_the_time_of_a_call(measured):
    joules, asked = measured(Script(watts=600.0))
    assert joules == pytest.approx(0.06, rel=0.005)
    assert asked == [("reference", 2000)]  # 1.6 s of blocks of 8 calls


def test_calls_that_no_graph_holds_are_launched_until_the_counter_was_read(measured):
    joules, asked = measured(Script(watts=500.0), mode="eager")
    assert joules == pytest.approx(0.05, rel=0.005)
    assert set(asked) == {("reference", 1)}  # one by one, and none is a replay
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
    session.sides, session.slots = {"reference": side}, 2
    session.repeated("reference", 40, lambda: told.append("read"))
    assert told == ["go on", 40, "read", "block", "stop"]


def test_a_worker_replays_as_often_as_it_is_told():
    worker, replays = Worker(), []
    event = SimpleNamespace(record=lambda: None, elapsed_time=lambda end: 4.0)
    worker.event = lambda enable_timing: event
    worker.bench.graph = (SimpleNamespace(replay=lambda: replays.append(1)), [])
    assert worker.block({"graph": True, "slots": [0, 1], "times": 3}) == {"seconds": pytest.approx(4e-3)}
    assert len(replays) == 3
    worker.block({"graph": True, "slots": [0, 1]})
    assert len(replays) == 4
