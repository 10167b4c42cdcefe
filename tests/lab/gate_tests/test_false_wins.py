"""False wins: the judgements of devices counted, and an unfinished record that goes on; nothing is timed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warpsmith.core.hardware import Machine, Noise, Target
from warpsmith.errors import MachineFailed, Misuse
from warpsmith.lab.gate_tests import false_wins, identical_judgements, identical_process, unfinished
from warpsmith.lab.gate_tests.false_win_models import FalseWins
from warpsmith.lab.gate_tests.identical_judgements import DeviceJudgement
from warpsmith.lab.gate_tests.unfinished import save_record
from warpsmith.lab.machine import device_lease, hardware, identity, measurement_store
from warpsmith.project import Project

GPUS = ["GPU-a", "GPU-b"]


@pytest.fixture
def target(workshop) -> Target:
    return hardware.read_target_page(workshop.project, "h200").target


def machine_of(device: str) -> Machine:
    return Machine(
        id=device.lower(), target="h200", device="NVIDIA H200", uuid=device, processor="a", libraries={}
    )


class Devices:
    """Two GPUs, of which each judgement's outcome is the next of a script, alternately on each device."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.outcomes: Iterator[tuple[Any, float]] = iter(())
        self.floors = dict.fromkeys(GPUS, 0.002)
        self.shares: dict[str, int] = {}
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        patch.setattr(identity, "list_gpus", lambda: [(str(i), gpu, "NVIDIA H200") for i, gpu in enumerate(GPUS)])
        patch.setattr(identity, "identify_machine", lambda _: machine_of(self.shown()))
        patch.setattr(measurement_store, "load_noise", lambda machine: self.noise(machine.uuid))
        patch.setattr(false_wins.noise, "outdated_reason", lambda noise, _: noise is None or None)
        patch.setattr(identical_process, "judge_on_devices", self.judge)
        patch.setattr(
            identical_judgements,
            "judge_on_device",
            lambda project, target, device, runs, tell: self.judge(project, target, {device: runs}, tell),
        )

    def shown(self) -> str:
        return os.environ["CUDA_VISIBLE_DEVICES"]

    def noise(self, device: str) -> Noise | None:
        floor = self.floors[device]
        return Noise(floor=floor, trials=6, how="") if floor else None

    def judge(self, _: Project, __: Target, shares: dict[str, int], ___: object) -> Iterator[DeviceJudgement]:
        self.shares = dict(shares)
        left = dict(shares)
        while any(left.values()):
            for device in left:
                if left[device]:
                    left[device] -= 1
                    outcome, gain = next(self.outcomes, ("none", 0.0))
                    if outcome == "failed":
                        raise MachineFailed("a device failed")
                    yield DeviceJudgement(
                        machine=machine_of(device),
                        floor=self.floors[device],
                        how="y = x",
                        outcome=outcome,
                        gain=gain,
                    )


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    return Devices(monkeypatch)


def count(workshop, target: Target, gpus: list[str], runs: int, earlier: FalseWins | None = None):
    return false_wins.count_false_wins(workshop.project, target, gpus, runs, earlier=earlier)


def test_false_wins_are_counted_with_their_interval(workshop, target, devices):
    devices.outcomes = iter([("accepted", 0.03), ("ambiguous", 0.01), ("regressions", -0.03)])
    records = list(count(workshop, target, GPUS[:1], 100))
    assert [record.runs for record in records] == list(range(1, 101))
    assert [record.finished for record in records] == [False] * 99 + [True]
    found = records[-1]
    assert (found.accepted, found.ambiguous, found.regressions, found.none) == (1, 1, 1, 97)
    assert (found.largest_gain, found.floor) == (0.03, 0.002)
    assert 0.05 < found.upper < 0.06
    assert found.within_rate
    assert not found.model_copy(update={"accepted": 3}).within_rate


def test_each_device_is_counted_for_itself(workshop, target, devices):
    devices.outcomes = iter([("none", 0.001), ("accepted", 0.03), ("none", 0.002)])
    devices.floors = {"GPU-a": 0.002, "GPU-b": 0.003}
    found = list(count(workshop, target, GPUS, 7))[-1]
    assert devices.shares == {"GPU-a": 4, "GPU-b": 3}
    first, second = found.devices
    assert (first.machine.uuid, first.runs, first.accepted, first.largest_gain) == ("GPU-a", 4, 0, 0.002)
    assert (second.machine.uuid, second.runs, second.accepted, second.floor) == ("GPU-b", 3, 1, 0.003)
    assert (found.machine.uuid, found.runs, found.accepted, found.floor) == ("GPU-a", 7, 1, 0.003)
    assert [each.device for each in found.judgements[:4]] == ["GPU-a", "GPU-b", "GPU-a", "GPU-b"]
    assert FalseWins.model_validate_json(found.model_dump_json()) == found


def test_an_unfinished_record_is_gone_on_with(workshop, target, devices, tmp_path: Path):
    devices.outcomes = iter([("accepted", 0.03), ("none", 0.001), ("none", 0.0), ("failed", 0.0)])
    path = tmp_path / "aa.json"
    assert false_wins.read_earlier_false_wins(path, target, GPUS, 6) == (None, "")
    records = count(workshop, target, GPUS, 6)
    for _ in range(3):
        begun = next(records)
        save_record(path, begun)
    with pytest.raises(MachineFailed):
        next(records)
    earlier, why = false_wins.read_earlier_false_wins(path, target, GPUS, 6)
    assert (earlier, why) == (begun, "")
    found = list(count(workshop, target, GPUS, 6, earlier))[-1]
    assert devices.shares == {"GPU-a": 1, "GPU-b": 2}  # what each lacks
    assert (found.runs, found.accepted, found.none, found.finished, found.largest_gain) == (6, 1, 5, True, 0.03)
    (whole,) = count(workshop, target, GPUS, 3, begun)  # all judgements are there already
    assert whole == begun.model_copy(update={"finished": True})


def test_a_record_that_is_not_gone_on_with(workshop, target, devices, tmp_path: Path):
    begun = list(count(workshop, target, GPUS, 3))[1]
    path = tmp_path / "aa.json"
    unfinished.save_record(path, begun)
    obstacle = "it holds 2 judgements, more than the 1 that are asked for"
    assert false_wins.read_earlier_false_wins(path, target, GPUS, 1) == (None, obstacle)
    assert "GPU-b, which is not among" in false_wins.read_earlier_false_wins(path, target, GPUS[:1], 3)[1]
    assert "another machine" in false_wins.read_earlier_false_wins(path, target, GPUS[1:], 3)[1]
    for floor in (0.4, None):  # another one, and one that is measured first
        devices.floors["GPU-b"] = floor
        assert "floor of GPU-b" in false_wins.read_earlier_false_wins(path, target, GPUS, 3)[1]


def test_the_first_devices_are_chosen(target, devices):
    assert false_wins.choose_devices(target, 1) == GPUS[:1]
    assert false_wins.choose_devices(target, 2) == GPUS
    with pytest.raises(Misuse, match=r"--parallel 3 needs .* `h200`, and this machine has 2; give"):
        false_wins.choose_devices(target, 3)


def test_a_cpu_is_one_device(workshop):
    cpu = hardware.read_target_page(workshop.project, "cpu").target
    assert false_wins.choose_devices(cpu, 1) == ["cpu"]
    with pytest.raises(Misuse, match="1, since a judgement times all cores; give"):
        false_wins.choose_devices(cpu, 2)
    assert device_lease.list_devices(cpu) == ["cpu"]
