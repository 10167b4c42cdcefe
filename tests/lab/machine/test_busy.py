"""Whether the device is ours alone, with the device played by stand-ins."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import psutil
import pytest

from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import contention

GAUGE = SimpleNamespace(strangers=lambda ours: [4711] if 4711 not in ours else [])


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch):
    """`rates(...)`: what the copies reach, one after the other, in GB/s; the measured one is 10."""

    def script(*values: float) -> list[float]:
        left = list(values)
        monkeypatch.setattr(contention, "_copy_rate", lambda: left.pop(0))
        return left

    return script


def test_a_copy_as_fast_as_measured_is_enough(workshop, rates):
    left = rates(8.1, 0.0)
    assert (
        contention.require_idle_gpu(workshop.measurement(), GAUGE, [])
        == "a copy reaches 81% of the idle GPU's 10 GB/s"
    )
    assert left == [0.0]


def test_a_slow_copy_is_tried_again(workshop, rates):
    left = rates(5.0, 7.9, 9.9)
    assert "99%" in contention.require_idle_gpu(workshop.measurement(), GAUGE, [])
    assert left == []


def test_a_copy_that_stays_slow_makes_the_machine_fail(workshop, rates):
    rates(5.0, 6.0, 5.5)
    with pytest.raises(MachineFailed, match=r"reaches 60% of the 10 GB/s .*processes 4711 use it. Judge again"):
        contention.require_idle_gpu(workshop.measurement(), GAUGE, [1])
    rates(5.0, 6.0, 5.5)
    with pytest.raises(MachineFailed, match=r"measured on the idle GPU. Judge again"):
        contention.require_idle_gpu(workshop.measurement(), GAUGE, [4711])


def test_without_a_measured_copy_nothing_is_compared(workshop, rates):
    rates()
    nothing = workshop.measurement().model_copy(update={"ceilings": {}})
    assert "no measured copy rate" in contention.require_idle_gpu(nothing, GAUGE, [])


def test_the_rate_of_a_copy_counts_read_and_written_bytes(monkeypatch: pytest.MonkeyPatch):
    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            done.append("record")

        def elapsed_time(self, other: Event) -> float:
            return times.pop(0)

    done: list[str] = []
    times = [1.0, 1.0, 9.0, 1.0, 0.5]  # ms
    tensor = SimpleNamespace(copy_=lambda _: done.append("copy"))
    torch = SimpleNamespace(
        uint8=None, empty=lambda size, **_: tensor, empty_like=lambda _: tensor,
        cuda=SimpleNamespace(Event=Event, synchronize=lambda: done.append("wait")),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert contention._copy_rate() == pytest.approx(2 * 2**30 / 1e-3 / 1e9)
    assert times == []
    assert done == ["wait", *["record", "copy", "record"] * 5, "wait"]


@pytest.mark.parametrize(
    ("percent", "said"), [(5.0, None), (12.5, None), (50.0, "other processes keep 2.0 cores busy")]
)
def test_a_loaded_cpu_is_named(monkeypatch: pytest.MonkeyPatch, percent: float, said: str | None):
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: percent)
    assert contention.describe_cpu_load() == said
