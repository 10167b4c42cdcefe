"""Performer: a job of a folder becomes the same request that this machine would make, and an outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_kit import OP, evaluation

from warpsmith.campaign import lab_requests
from warpsmith.campaign.jobs import perform
from warpsmith.core.campaign import Manifest
from warpsmith.errors import BadDefinition
from warpsmith.execution.job import Job, ScreenResult, ScreenResults
from warpsmith.lab.calibration import measurement
from warpsmith.lab.doctor import checks, installation
from warpsmith.lab.doctor.models import DoctorGroup, DoctorReport
from warpsmith.lab.machine import device_lease, hardware

MANIFEST = Manifest(campaign="c", target_op=OP, target="cpu", target_language="toy", created="2026-01-01 00:00")
MEASURED = {
    "machine": {"id": "cpu-there", "target": "cpu", "device": "d", "processor": "p", "libraries": {}},
    "measured": "2026-01-01 00:00",
    "ceilings": {},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a job as the other machine unpacked it."""
    toys = tmp_path / "project" / "kernels" / OP / "toy"
    toys.mkdir(parents=True)
    (tmp_path / "project" / "warpsmith.toml").write_text("")
    (tmp_path / "bundle").write_text("b" * 64)
    (toys / "v1.toy").write_text("one")
    (toys / "v2.toy").write_text("two")
    page = SimpleNamespace(target=SimpleNamespace(kind="cpu"))
    monkeypatch.setattr(hardware, "read_target_page", lambda project, target: page)
    monkeypatch.setattr(device_lease, "lease_device", lambda target, tell: nullcontext())
    return tmp_path


def perform_in(folder: Path, **job: Any) -> Any:
    (folder / "job.json").write_text(Job(manifest=MANIFEST, **job).model_dump_json())
    return perform.perform_job(folder)


def test_a_judgement(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def request(project: Any, manifest: Any, solution: Any, tell: Any, **options: Any) -> Any:
        asked.append((solution, options))
        tell("begun")
        return solution

    monkeypatch.setattr(lab_requests, "lab_request", request)
    monkeypatch.setattr(lab_requests, "judge_request", lambda solution: evaluation(solution.path))
    outcome = perform_in(
        folder, kind="judge", solution="toy/v2", best="toy/v1", peers=("torch.compile",), judgement=2
    )
    assert outcome.bundle_sha256 == "b" * 64
    assert outcome.evaluation.version == "v2"
    ((solution, options),) = asked
    assert solution.name == "toy/v2"
    assert options["best"].name == "toy/v1"
    assert (options["peers"], options["judgement"], options["timed"]) == (("torch.compile",), 2, True)
    assert json.loads((folder / "progress").read_text()) == {"text": "begun", "share": None}


def test_the_outcome_counts_the_devices_before_a_lease_hides_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visible = [4]

    @contextmanager
    def lease(target: Any, tell: Any) -> Iterator[None]:
        visible[0] = 1
        yield

    monkeypatch.setattr(device_lease, "lease_device", lease)
    monkeypatch.setattr(device_lease, "count_devices", lambda target: visible[0])
    monkeypatch.setattr(perform.screening, "time_contenders", lambda *_: ScreenResults(results={}))
    assert perform_in(folder, kind="screen", best="toy/v1").devices == 4


def test_an_error_is_the_outcome(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def request(*_: Any, **__: Any) -> Any:
        raise BadDefinition(f"{folder}/project/kernels/{OP}/definition.py does not import.")

    monkeypatch.setattr(lab_requests, "lab_request", request)
    outcome = perform_in(folder, kind="judge", solution="toy/v1")
    assert outcome.error.kind == "BadDefinition"
    assert outcome.error.message.startswith(f"kernels/{OP}/definition.py"), "as it is called in the project"


def test_a_measurement_comes_back_if_it_is_new(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    path = folder / "project" / "docs" / "knowledge" / "hardware" / "measured" / "cpu-there.json"

    def measure(project: Any, target: Any, tell: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(MEASURED))

    monkeypatch.setattr(
        perform.define, "require_machine", lambda language, page, objective: checked.append(language)
    )
    monkeypatch.setattr(measurement, "ensure_measurement", measure)
    assert perform_in(folder, kind="measure").measurement.machine.id == "cpu-there"
    assert perform_in(folder, kind="measure").measurement is None, "it was in the bundle"
    assert checked == ["toy", "toy"]


def test_a_profile_brings_its_reports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explain(request: Any, reports: Path, workload: str | None, *, full: bool) -> None:
        assert (request, workload, full) == ("a request", "large", True)
        reports.mkdir(parents=True)
        (reports / "r.ncu-rep").write_bytes(b"\0report")

    monkeypatch.setattr(lab_requests, "lab_request", lambda *_, **__: "a request")
    monkeypatch.setattr(perform.explain, "explain_version", explain)
    outcome = perform_in(folder, kind="profile", solution="toy/v1", workload="large", full=True)
    assert outcome.files == {"r.ncu-rep": b"\0report"}
    assert type(outcome).model_validate_json(outcome.model_dump_json()).files == outcome.files


def test_a_screen_times_what_travelled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[Any] = []
    result = ScreenResults(results={1: ScreenResult(failure="slow"), 3: ScreenResult(equal=True)})
    monkeypatch.setattr(
        perform.screening, "time_contenders", lambda project, order, tell: orders.append(order) or result
    )
    files = {1: "contenders/1/v2.toy", 3: "contenders/3/v2.toy"}
    outcome = perform_in(folder, kind="screen", best="toy/v1", language="toy", seconds=9.0, contenders=files)
    assert outcome.screen == result
    (order,) = orders
    assert order.paths == {number: str(folder / "project" / name) for number, name in files.items()}
    assert (order.best, order.language, order.seconds, order.manifest) == ("toy/v1", "toy", 9.0, MANIFEST)


def test_an_examination_leaves_out_what_stays_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = DoctorReport.of([DoctorGroup(name="trust", rows=())])
    asked: dict[str, Any] = {}
    monkeypatch.setattr(perform, "take_survey", lambda start: start)
    monkeypatch.setattr(checks, "run_checks", lambda survey, chosen: asked.update(chosen) or report)
    (folder / "job.json").write_text('{"kind": "examine"}')
    assert perform.perform_job(folder).doctor == report
    assert {"lab", "languages", "CPU", "GPU", "trust"} <= set(asked)
    assert "agents" not in asked
    assert installation.check_judging in asked["lab"]
    assert installation.check_plots not in asked["lab"]
