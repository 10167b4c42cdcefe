"""Launch floor: measured by each clock of the device, and recorded with the machine."""

from __future__ import annotations

import pytest

from warpsmith.core.hardware import Measurement
from warpsmith.lab.calibration import launch
from warpsmith.lab.machine import hardware
from warpsmith.lab.timing.answers import TimedBlock


class Scripted:
    """Sides whose calls take 1 us, and in a graph less; the first blocks and every third one are slow."""

    workloads = ("1x1",)

    def __init__(self, target, names, sizes) -> None:
        assert sizes == ("1x1",)
        self.device = "cuda" if target.kind == "gpu" else "cpu"
        self.graph, self.blocks = False, 0

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def restart(self) -> None:
        pass

    def open_session(self, workload):
        return self

    def fill_inputs(self, *, quick: bool) -> None:
        assert quick

    def capture_graphs(self) -> dict[str, str]:
        self.graph = True
        return {}

    def time_block(self, name: str) -> TimedBlock:
        self.blocks += 1
        slow = 50 if self.blocks <= 3 or self.blocks % 3 == 0 else 1
        return TimedBlock((2e-7 if self.graph else 1e-6) * slow, 0.0)


@pytest.mark.parametrize(
    ("name", "floors"), [("cpu", {"parent": 1e-6}), ("h200", {"events": 1e-6, "graph": 2e-7})]
)
def test_each_clock_has_its_floor_and_load_does_not_raise_it(workshop, monkeypatch, name, floors) -> None:
    monkeypatch.setattr(launch, "IdenticalSides", Scripted)
    found = launch.measure_launch(hardware.read_target_page(workshop.project, name).target)
    assert {clock: floor.seconds for clock, floor in found.items()} == pytest.approx(floors)
    assert {floor.samples for floor in found.values()} == {launch.BLOCKS["cpu" if name == "cpu" else "cuda"]}


def test_a_side_without_a_graph_has_no_floor_for_it(workshop, monkeypatch) -> None:
    monkeypatch.setattr(Scripted, "capture_graphs", lambda _: {"single": "it synchronizes"})
    monkeypatch.setattr(launch, "IdenticalSides", Scripted)
    assert set(launch.measure_launch(hardware.read_target_page(workshop.project, "h200").target)) == {"events"}


def test_a_real_call_on_the_cpu_takes_microseconds(workshop, monkeypatch) -> None:
    monkeypatch.setitem(launch.BLOCKS, "cpu", 3)
    (floor,) = launch.measure_launch(hardware.read_target_page(workshop.project, "cpu").target).values()
    assert 1e-6 < floor.seconds < 1
    assert floor.samples == 3


def test_a_measurement_without_a_launch_floor_keeps_its_bytes() -> None:
    machine = {"id": "cpu-0", "target": "cpu", "device": "a", "processor": "a", "libraries": {}}
    old = Measurement.model_validate({"machine": machine, "measured": "2026-11-21 10:00", "ceilings": {}})
    assert "launch" not in old.model_dump()
