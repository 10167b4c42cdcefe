"""The A/A floor: how it follows from the comparisons, and when it must be measured again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from warpsmith.core import gate_rules
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Noise
from warpsmith.errors import MachineFailed
from warpsmith.lab.calibration import noise
from warpsmith.lab.calibration.noise import CANARY, NOISE_SIDES
from warpsmith.lab.machine import hardware, system
from warpsmith.lab.operator import definition_file
from warpsmith.lab.timing.samples import Samples

SETTINGS = {"sm_limit": 1980, "power_limit": 700.0}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Settings of a GPU, which tests change."""
    now: dict[str, float] = dict(SETTINGS)
    monkeypatch.setattr(noise.identity, "visible_gpu", lambda: SimpleNamespace(uuid="GPU-1"))
    monkeypatch.setattr(noise, "Gauge", lambda uuid: SimpleNamespace(settings=lambda: now))
    return now


def floor(**changes: object) -> Noise:
    usual = {
        "gate_version": GATE_VERSION,
        "boot": system.boot_id(),
        "settings": SETTINGS,
        "floor": 0.004,
        "trials": 6,
        "how": "y = x + x",
    }
    return Noise.model_validate({**usual, **changes})


def target(workshop, name="h200"):
    return hardware.read_target_page(workshop.project, name).target


def test_a_floor_of_this_gate_and_these_settings_holds(workshop, gpu):
    assert noise.outdated_reason(floor(), target(workshop)) is None
    assert noise.outdated_reason(floor(), target(workshop, "cpu")) is None


def test_a_floor_that_was_never_measured(workshop):
    assert noise.outdated_reason(None, target(workshop, "cpu")) == "it was never measured"


def test_a_floor_of_an_older_gate(workshop, gpu):
    assert (
        noise.outdated_reason(floor(gate_version=GATE_VERSION - 1), target(workshop))
        == "it is from another version of the gate"
    )


def test_a_floor_of_other_settings(workshop, gpu):
    gpu["power_limit"] = 500.0
    assert noise.outdated_reason(floor(), target(workshop)) == "power_limit of the GPU changed"
    gpu["sm_limit"] = 1200
    assert noise.outdated_reason(floor(), target(workshop)) == "sm_limit, power_limit of the GPU changed"


def test_a_setting_that_was_not_told_then_does_not_count(workshop, gpu):
    gpu["memory_limit"] = 3201
    assert noise.outdated_reason(floor(), target(workshop)) is None


class Alike:
    """Two workers, reduced to the attributes that are used."""

    device = "cpu"
    workloads = (SimpleNamespace(name="64x64"),)
    file = SimpleNamespace(definition=SimpleNamespace(description="y = x"))
    open_session = None
    restarts = 0

    def __init__(self, target: object, names: tuple[str, ...]) -> None:
        assert names == (*NOISE_SIDES, CANARY)

    def restart(self) -> None:
        Alike.restarts += 1

    def __enter__(self) -> Alike:
        return self

    def __exit__(self, *_: object) -> None: ...


def scripted(monkeypatch: pytest.MonkeyPatch, gains: list[float], canary: float = 2.0) -> None:
    """Script A/A comparisons that show these gains, and then the time of the canary."""
    left = iter(gains)

    class Race:
        def __init__(self, *_: object) -> None:
            self.samples: dict[str, Samples] = {}

        def time_workload(self, workload: SimpleNamespace, opened: object) -> None:
            gain = next(left, None)
            if gain is None:
                self.samples[workload.name] = Samples({NOISE_SIDES[0]: [1.0] * 4, CANARY: [canary] * 4})
                return
            self.samples[workload.name] = Samples({NOISE_SIDES[0]: [1.0] * 4, NOISE_SIDES[1]: [1.0 + gain] * 4})

    monkeypatch.setattr(Alike, "restarts", 0)
    monkeypatch.setattr(noise, "IdenticalSides", Alike)
    monkeypatch.setattr(noise, "PairedTiming", Race)


def test_the_floor_is_above_the_largest_of_a_few_gains_either_way(workshop, monkeypatch):
    scripted(monkeypatch, [0.001, -0.03, 0.002, 0.001])
    found = noise.measure_noise(target(workshop, "cpu"), trials=4)
    assert 0.03 < found.floor < 0.06
    assert (found.trials, found.gate_version, found.settings) == (4, GATE_VERSION, {})
    assert Alike.restarts == 4


@pytest.mark.parametrize("canary", [0.5, 1.0])
def test_a_side_that_does_its_work_twice_must_show(workshop, monkeypatch, canary):
    scripted(monkeypatch, [0.001, 0.002], canary)
    monkeypatch.setattr(Alike, "device", "cuda")
    with pytest.raises(MachineFailed, match=f"takes {canary:.2f} times as long"):
        noise.measure_noise(target(workshop, "cpu"), trials=2)


def test_the_canary_does_the_work_of_the_reference_twice():
    file = definition_file.load_definition(noise._DEFINITION)
    x, w = torch.randn(3, 4), torch.randn(4)
    assert torch.equal(file.peers[CANARY](x, w), file.reference(x, w))


def test_no_floor_is_believed_below_the_least(workshop, monkeypatch):
    scripted(monkeypatch, [0.0, 0.0001])
    assert noise.measure_noise(target(workshop, "cpu"), trials=2).floor == gate_rules.MIN_FLOOR


@pytest.mark.parametrize(("name", "device"), [("cpu", "cpu"), ("h200", "cuda")])
def test_each_device_has_its_sizes(workshop, name, device):
    alike = noise.IdenticalSides(target(workshop, name), NOISE_SIDES)
    assert [workload.name for workload in alike.workloads] == list(gate_rules.NOISE_SIZES[device])
