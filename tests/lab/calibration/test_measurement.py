"""Measurement of a machine: everything once, and only the floor again if it is outdated."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Ceiling, LaunchFloor, Noise, Target
from warpsmith.lab.calibration import measurement
from warpsmith.lab.machine import hardware, identity, measurement_store, system


@pytest.fixture
def target(workshop, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A machine without any measurement, not even one that ships with the lab."""
    found = hardware.read_target_page(workshop.project, "cpu").target
    monkeypatch.setattr(projects, "SHIPPED", Path("/nowhere"))
    return found


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the measurements that were made, in order."""
    done: list[str] = []

    def ceilings(_: object) -> dict[str, Ceiling]:
        done.append("ceilings")
        return {"copy": Ceiling(value=10.0 * len(done), unit="GB/s", best=11.0, spread=0.01, how="made up")}

    def floor(*_: object) -> Noise:
        done.append("floor")
        return Noise(
            gate_version=GATE_VERSION, boot=system.boot_id(), floor=0.001 * len(done), trials=2, how="made up"
        )

    def launch(_: object) -> dict[str, LaunchFloor]:
        done.append("launch")
        return {"parent": LaunchFloor(seconds=1e-6 * len(done), spread=0.1, samples=9)}

    monkeypatch.setattr(measurement.launch, "measure_launch", launch)
    monkeypatch.setattr(measurement.ceiling, "measure_ceilings", ceilings)
    monkeypatch.setattr(measurement.noise, "measure_noise", floor)
    return done


def test_a_machine_that_is_not_known_is_measured_once(workshop, target, measured):
    first = measurement.ensure_measurement(workshop.project, target)
    assert measured == ["ceilings", "floor", "launch"]
    assert measurement.ensure_measurement(workshop.project, target) == first
    assert measured == ["ceilings", "floor", "launch"]


def test_what_is_not_timed_needs_no_measurement(workshop, target, measured):
    assert measurement.stored_measurement(workshop.project, target).ceilings == {}
    first = measurement.ensure_measurement(workshop.project, target)
    assert measurement.stored_measurement(workshop.project, target) == first
    assert measured == ["ceilings", "floor", "launch"]


def test_an_outdated_floor_alone_is_measured_again(workshop, target, measured):
    told: list[str] = []
    first = measurement.ensure_measurement(workshop.project, target)
    older = first.noise.model_copy(update={"gate_version": GATE_VERSION - 1})
    measurement_store.save_measurement(workshop.project, first.model_copy(update={"noise": older}))
    again = measurement.ensure_measurement(workshop.project, target, told.append)
    assert measured == ["ceilings", "floor", "launch", "floor"]
    assert told == ["A/A floor: it is from another version of the gate"]
    assert (again.ceilings, again.launch) == (first.ceilings, first.launch)
    assert again.noise.floor == pytest.approx(0.004)
    assert measurement_store.load_measurement(workshop.project, identity.identify_machine(target)) == again


def test_a_missing_launch_floor_alone_is_measured(workshop, target, measured):
    told: list[str] = []
    first = measurement.ensure_measurement(workshop.project, target)
    measurement_store.save_measurement(workshop.project, first.model_copy(update={"launch": {}}))
    again = measurement.ensure_measurement(workshop.project, target, told.append)
    assert measured == ["ceilings", "floor", "launch", "launch"]
    assert told == ["launch floor: it was never measured"]
    assert (again.ceilings, again.noise) == (first.ceilings, first.noise)
    assert again.launch["parent"].seconds == pytest.approx(4e-6)
    assert measurement_store.load_measurement(workshop.project, identity.identify_machine(target)) == again


def test_a_floor_of_another_start_or_of_another_user_is_measured_again(workshop, target, measured, monkeypatch):
    """The project's file keeps the floor for readers; a judgement takes only what this machine measured."""
    told: list[str] = []
    first = measurement.ensure_measurement(workshop.project, target)
    monkeypatch.setattr(system, "boot_id", lambda: "another")
    measurement.ensure_measurement(workshop.project, target, told.append)
    assert "started anew" in told.pop()
    measurement_store.forget_noise(identity.identify_machine(target))
    measurement.ensure_measurement(workshop.project, target, told.append)
    assert "never measured" in told.pop()
    path = measurement_store.measurement_path(workshop.project, first.machine)
    assert '"floor": 0.002' in path.read_text(encoding="utf-8")
    assert measured.count("floor") == 3
