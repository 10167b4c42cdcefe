"""Examination of a context: what stops it is named before anything of the lab runs there."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith import project as projects
from warpsmith.execution import examine
from warpsmith.execution.contexts import Context, NamedContext
from warpsmith.execution.remote import Probe
from warpsmith.lab.doctor.models import DoctorGroup, DoctorReport, DoctorRow, Readiness
from warpsmith.packages import list_requirements

ENTRY = NamedContext("lab", Context(ssh="gpu01"), "yours", Path("-"))
PROBE = Probe(
    python="3.12.1", executable="/opt/python", workdir="/data/warpsmith", host="gpu01.example", time=0.0,
    free=2**40, writable=True, lab=False,
    packages={each.package: "9.9" for extra in ("", "lab") for each in list_requirements(extra)},
)  # fmt: skip
OK = DoctorReport.of([DoctorGroup(name="GPU", rows=(DoctorRow(name="device", state="ok", found="H100"),))])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    state = SimpleNamespace(probe=PROBE, runs=0, ahead=0.0)

    class Machine:
        def __init__(self, entry: Any, tell: Any, root: Any) -> None: ...

        def probe(self, packages: Any) -> Probe:
            assert "pydantic" in packages
            return state.probe.model_copy(update={"time": time.time() + state.ahead})

        def run(self, bundle: Any) -> Any:
            state.runs += 1
            return SimpleNamespace(outcome=SimpleNamespace(doctor=OK))

    monkeypatch.setattr(examine, "RemoteMachine", Machine)
    return state


def examined(tmp_path: Path) -> tuple[DoctorReport, dict[str, DoctorRow]]:
    report = examine.examine_context(projects.find_project(tmp_path), ENTRY)
    return report, {row.name: row for group in report.groups for row in group.rows}


def test_a_machine_that_has_everything(machine: SimpleNamespace, tmp_path: Path) -> None:
    report, rows = examined(tmp_path)
    assert report.answer is Readiness.READY
    assert [group.name for group in report.groups] == ["context", "GPU"]
    assert "clock" not in rows


def test_missing_packages_stop_it(machine: SimpleNamespace, tmp_path: Path) -> None:
    machine.probe = PROBE.model_copy(update={"packages": {**PROBE.packages, "pydantic": None, "torch": None}})
    report, rows = examined(tmp_path)
    assert (report.answer, machine.runs) == (Readiness.NOT_READY, 0)
    fix = rows["dependencies"].fix
    assert "/opt/python -m pip install 'pydantic>=" in fix
    assert "'torch>=" in fix, "one command installs everything"
    assert "numpy" not in fix
    assert "on gpu01" in fix


def test_a_folder_that_takes_no_files_stops_it(machine: SimpleNamespace, tmp_path: Path) -> None:
    machine.probe = PROBE.model_copy(update={"writable": False})
    assert (examined(tmp_path)[0].answer, machine.runs) == (Readiness.NOT_READY, 0)


def test_a_clock_that_is_off_is_named(machine: SimpleNamespace, tmp_path: Path) -> None:
    machine.ahead = -7200.0
    report, rows = examined(tmp_path)
    assert (rows["clock"].state, report.answer) == ("gap", Readiness.READY)
    assert "-7200 s" in rows["clock"].found
