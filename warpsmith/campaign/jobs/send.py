"""Senders of jobs: judge, profile and measure on the machine of a context, with the records on this one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import PROFILES, Campaign
from warpsmith.core.campaign import Manifest
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.core.text import Tell
from warpsmith.errors import MachineFailed
from warpsmith.execution.bundle import pack_job
from warpsmith.execution.contexts import find_context
from warpsmith.execution.job import Job, Outcome
from warpsmith.execution.remote import RemoteMachine
from warpsmith.lab.machine import measurement_store
from warpsmith.lab.operator.definition_file import definition_sha256
from warpsmith.project import Project

SKEW_SECONDS = 60.0
"""Difference of the clocks from which a record's time is corrected: records give minutes."""

_MINUTE = "%Y-%m-%d %H:%M"


@dataclass(frozen=True)
class Conditions:
    """Conditions of a judgement, as `warpsmith.lab.gate.request.Request` explains them."""

    best: Solution | None = None
    """Version that it must beat."""
    sets: tuple[WorkloadSet, ...] = ("representative",)
    """Workload sets that are timed."""
    peers: tuple[str, ...] = ()
    """Further sides to time."""
    timed: bool = True
    """False for a quick check."""
    judgement: int = 1
    """Number among the campaign's comparisons."""
    accepted: Evaluation | None = None
    """Judgement that accepted the best version."""


def judge_in_context(
    project: Project, manifest: Manifest, solution: Solution, conditions: Conditions, tell: Tell
) -> Evaluation:
    """Judge a version on the machine of the manifest's context; the evaluation names it.

    Raises:
        Misuse: there is no such context.
        MachineLacks: the machine cannot be reached or lacks something.
        MachineFailed: the outcome is not that of this request.
    """
    best = conditions.best
    job = Job(
        kind="judge",
        manifest=_travelling(manifest),
        solution=solution.name,
        best=best.name if best else None,
        sets=conditions.sets,
        peers=conditions.peers,
        timed=conditions.timed,
        judgement=conditions.judgement,
        accepted=conditions.accepted,
    )
    definition = definition_sha256(project.definition_path(manifest.target_op))
    outcome, skew = _run(project, manifest, job, tell, solution.path, best.path if best else None)
    evaluation = outcome.evaluation
    if evaluation is None or evaluation.provenance.definition_sha256 != definition:
        raise MachineFailed(
            f"{manifest.context}: the outcome is no judgement under this definition; judge it again."
        )
    origin = evaluation.provenance
    measured = _shift(origin.measured, -skew) if abs(skew) > SKEW_SECONDS else origin.measured
    return evaluation.model_copy(
        update={"provenance": origin.model_copy(update={"context": manifest.context, "measured": measured})}
    )


def profile_in_context(
    campaign: Campaign, solution: Solution, tell: Tell, workload: str | None = None, *, full: bool = False
) -> Profile:
    """Profile a version on the machine of the campaign's context; its reports are written to the campaign.

    Raises:
        Misuse: there is no such context, or no such workload.
        MachineLacks: the machine cannot be reached or lacks something.
    """
    manifest = campaign.manifest
    job = Job(kind="profile", manifest=_travelling(manifest), solution=solution.name, workload=workload, full=full)
    outcome, _ = _run(campaign.project, manifest, job, tell, solution.path)
    if outcome.profile is None:
        raise MachineFailed(f"{manifest.context}: the outcome is no profile; profile it again.")
    for name, content in outcome.files.items():
        files.write_file(campaign.folder / PROFILES / Path(name).name, content)
    return outcome.profile


def measure_in_context(project: Project, manifest: Manifest, tell: Tell) -> None:
    """Measure the machine of the manifest's context, unless it was, and check that it serves the campaign.

    Raises:
        Misuse: there is no such context, or the language cannot run on such a target.
        MachineLacks: the machine cannot be reached or lacks something.
    """
    _run(project, manifest, Job(kind="measure", manifest=_travelling(manifest)), tell)


def _run(
    project: Project,
    manifest: Manifest,
    job: Job,
    tell: Tell,
    solution: Path | None = None,
    best: Path | None = None,
) -> tuple[Outcome, float]:
    machine = RemoteMachine(find_context(project, manifest.context or ""), tell)
    result = machine.run(pack_job(project, job, solution, best))
    if abs(result.skew) > SKEW_SECONDS:
        tell(f"{manifest.context}: its clock is {result.skew:+.0f} s off; the record's time is corrected")
    if measurement := result.outcome.measurement:
        measurement_store.write_measurement(project, measurement)
    return result.outcome, result.skew


def _travelling(manifest: Manifest) -> Manifest:
    """Return the manifest for the other machine, which is the local one there."""
    return manifest.model_copy(update={"context": None})


def _shift(minute: str, seconds: float) -> str:
    return (datetime.strptime(minute, _MINUTE) + timedelta(seconds=seconds)).strftime(_MINUTE)
