"""Unfinished records: those that a command continues, and those that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.core.hardware import Machine
from warpsmith.lab.gate_tests import unfinished
from warpsmith.lab.gate_tests.models import RedTeamReport
from warpsmith.lab.machine import provenance

HERE = Machine(
    id="h200-0", target="h200", device="a", processor="a", clocks={"sm": 345}, libraries={"torch": "2.11.0"}
)
OTHER = "it is from another machine, another target or other library versions"


def record(**changes: object) -> RedTeamReport:
    about = {"gate_version": 2, "lab_sha256": provenance.lab_sha256(), "measured": "2026-01-01 00:00"}
    return RedTeamReport.model_validate({**about, "machine": HERE, "results": (), "finished": False, **changes})


def read(path: Path, why: str = "") -> tuple[RedTeamReport | None, str]:
    return unfinished.read_unfinished(path, RedTeamReport, HERE, lambda _: why)


def test_one_of_this_lab_and_machine(tmp_path: Path):
    path = tmp_path / "out.json"
    assert read(path) == (None, "")
    busy = record(machine=HERE.model_copy(update={"clocks": {"sm": 1980}}))  # clocks differ at each read
    unfinished.save_record(path, busy)
    assert read(path) == (busy, "")
    assert read(path, "it is of another time") == (None, "it is of another time")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lab_sha256": "0" * 64}, "the lab's code has changed since"),
        ({"machine": HERE.model_copy(update={"id": "h200-1"})}, OTHER),
        ({"machine": HERE.model_copy(update={"target": "cpu"})}, OTHER),
        ({"machine": HERE.model_copy(update={"libraries": {"torch": "2.12.0"}})}, OTHER),
    ],
)
def test_one_of_something_else(tmp_path: Path, changes: dict[str, object], why: str):
    path = tmp_path / "out.json"
    unfinished.save_record(path, record(**changes))
    assert read(path) == (None, why)


def test_a_record_from_before_the_field_is_finished():
    assert RedTeamReport.model_validate_json(record().model_dump_json(exclude={"finished"})).finished


@pytest.mark.parametrize("content", ["", "{", "# Notes", '{"runs": 3}'])
def test_no_record_at_all(tmp_path: Path, content: str):
    path = tmp_path / "out.json"
    unfinished.unfinished_path(path).write_text(content)
    assert read(path) == (None, "it holds no record of this command")


def test_a_finished_one_stays_until_another_is(tmp_path: Path):
    path = tmp_path / "out.json"
    whole = record(finished=True)
    unfinished.save_record(path, whole)
    unfinished.save_record(path, record(measured="2026-02-02 00:00"))
    assert RedTeamReport.model_validate_json(path.read_text()) == whole
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "out.unfinished.json"]
    unfinished.save_record(path, record(finished=True, measured="2026-02-02 00:00"))
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
