"""Performer of one job on the machine of a context.

The folder holds the bundle. Progress is appended to a file, and the outcome appears as a whole at the end.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from warpsmith import files
from warpsmith import project as projects
from warpsmith.campaign import define, explain, lab_requests
from warpsmith.campaign.history import solutions
from warpsmith.campaign.history.store import PROFILES
from warpsmith.campaign.jobs import screening
from warpsmith.campaign.jobs.screening import ScreenOrder
from warpsmith.campaign.jobs.send import Conditions
from warpsmith.core.campaign import Manifest
from warpsmith.core.evaluation import GATE_VERSION
from warpsmith.core.hardware import Measurement
from warpsmith.core.text import Tell
from warpsmith.errors import WarpsmithError
from warpsmith.execution.bundle import JOB, PROJECT
from warpsmith.execution.job import Job, JobError, Outcome
from warpsmith.lab.calibration import measurement
from warpsmith.lab.doctor import checks, installation
from warpsmith.lab.doctor.survey import take_survey
from warpsmith.lab.machine import device_lease, hardware, provenance
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.project import Project

OUTCOME, PROGRESS, BUNDLE = "outcome.json", "progress", "bundle"
"""Files of a job's folder: the outcome, lines of progress, and the hash of the bundle that was unpacked."""

_ELSEWHERE = (installation.check_plots, installation.check_project, *checks.CHECKS["agents"])
"""Checks of the doctor that do not concern a machine that only judges."""


def main() -> None:
    """Perform the job of the folder that the command line names."""
    signal.signal(signal.SIGTERM, _exit)  # what it started and its temporary files are then cleaned up
    folder = Path(sys.argv[1]).resolve()
    files.write_file(folder / OUTCOME, perform_job(folder).model_dump_json(exclude_defaults=True))


def perform_job(folder: Path) -> Outcome:
    """Perform the job in a folder and return its outcome, an error of the lab included."""
    job = Job.model_validate_json((folder / JOB).read_bytes())
    project = projects.find_project(folder / PROJECT)
    before = _measurements(project)

    def tell(text: str) -> None:
        files.append_line(
            folder / PROGRESS, json.dumps({"text": str(text), "share": getattr(text, "share", None)})
        )

    parts: dict[str, Any]
    try:
        parts = _examination(project) if job.manifest is None else _work(project, job, job.manifest, tell)
    except WarpsmithError as error:
        message = str(error).replace(f"{project.root}/", "")
        parts = {"error": JobError(kind=type(error).__name__, message=message)}
    news = [content for name, content in _measurements(project).items() if before.get(name) != content]
    return Outcome(
        bundle_sha256=(folder / BUNDLE).read_text(),
        lab_sha256=provenance.lab_sha256(),
        gate_version=GATE_VERSION,
        measurement=Measurement.model_validate_json(news[0]) if news else None,
        **parts,
    )


def _examination(project: Project) -> dict[str, Any]:
    groups = {
        name: tuple(check for check in group if check not in _ELSEWHERE) for name, group in checks.CHECKS.items()
    }
    chosen = {name: group for name, group in groups.items() if group}
    return {"doctor": checks.run_checks(take_survey(project.root), chosen)}


def _work(project: Project, job: Job, manifest: Manifest, tell: Tell) -> dict[str, Any]:
    page = hardware.read_target_page(project, manifest.target)
    devices = device_lease.count_devices(page.target)  # before a lease hides all but one
    return {"devices": devices, **_work_on_device(project, job, manifest, page, tell)}


def _work_on_device(
    project: Project, job: Job, manifest: Manifest, page: HardwarePage, tell: Tell
) -> dict[str, Any]:
    with device_lease.lease_device(page.target, tell):
        if job.kind == "measure":
            define.require_machine(manifest.target_language, page, manifest.objective)
            measurement.ensure_measurement(project, page.target, tell)
            return {}
        if job.kind == "screen":
            return {"screen": screening.time_contenders(project, _screen_order(project, job, manifest), tell)}
        solution = solutions.find_solution(project, manifest.target_op, job.solution)
        if job.kind == "profile":
            request = lab_requests.lab_request(project, manifest, solution, tell)
            folder = project.devlog / manifest.target_op / manifest.campaign / PROFILES
            profile = explain.explain_version(request, folder, job.workload, full=job.full)
            return {"profile": profile, "files": _contents(folder)}
        best = solutions.find_solution(project, manifest.target_op, job.best) if job.best else None
        conditions = Conditions(
            best=best,
            sets=job.sets,
            peers=job.peers,
            timed=job.timed,
            judgement=job.judgement,
            accepted=job.accepted,
        )
        return {"evaluation": lab_requests.judge_here(project, manifest, solution, tell, conditions)}


def _screen_order(project: Project, job: Job, manifest: Manifest) -> ScreenOrder:
    return ScreenOrder(
        root=str(project.root),
        manifest=manifest,
        best=job.best or "",
        language=job.language,
        sets=job.sets,
        seconds=job.seconds,
        paths={number: str(project.root / name) for number, name in job.contenders.items()},
    )


def _contents(folder: Path) -> Mapping[str, bytes]:
    import base64

    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: base64.b64encode(path.read_bytes()) for path in paths if path.is_file()}


def _measurements(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(project.measurements.glob("*.json"))}


def _exit(*_: object) -> NoReturn:
    sys.exit(128 + signal.SIGTERM)
