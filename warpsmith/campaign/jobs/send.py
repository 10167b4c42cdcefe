"""Senders of jobs: judge, profile and measure on the machine of a context, with the records on this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from warpsmith import files
from warpsmith.campaign.history import closing
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import PROFILES, Campaign
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Manifest
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.hardware import Measurement
from warpsmith.core.profile import Profile
from warpsmith.core.text import Tell
from warpsmith.errors import MachineFailed, WarpsmithError
from warpsmith.execution.bundle import pack_job
from warpsmith.execution.contexts import find_context, require_trust
from warpsmith.execution.job import Job, ScreenResults
from warpsmith.execution.remote import SKEW_SECONDS, RemoteMachine, RemoteOutcome
from warpsmith.execution.slurm import SlurmConnection
from warpsmith.lab.machine import measurement_store
from warpsmith.lab.operator.definition_file import definition_sha256
from warpsmith.project import Project, find_project

FORKS = (".warpsmith", "contenders")
"""Folders in a project, the outer one first, that hold the forks of campaigns for contenders."""

_REPORT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""Name of a profile's report."""


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
    project, best = _owner(project), conditions.best
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
    begin = this_minute()
    result = _run(project, manifest, job, tell, solution.path, best.path if best else None)
    evaluation = result.outcome.evaluation
    subject = (manifest.target_op, solution.name, manifest.target, definition)
    if evaluation is None or subject != _subject(evaluation):
        raise MachineFailed(
            f"{manifest.context}: the outcome is no judgement of this version and definition; judge it again."
        )
    origin = evaluation.provenance
    _keep_measurement(project, result.outcome.measurement, origin.machine.id)
    measured = origin.measured if begin <= origin.measured <= this_minute() else this_minute()  # another clock
    update: dict[str, object] = {"context": manifest.context, "measured": measured}
    if result.outcome.devices > 1:
        update |= {"context_devices": result.outcome.devices}
    if result.allocation:
        update |= {"node": result.allocation.node, "slurm_job": result.allocation.job}
    return evaluation.model_copy(update={"provenance": origin.model_copy(update=update)})


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
    outcome = _run(_owner(campaign.project), manifest, job, tell, solution.path).outcome
    if outcome.profile is None or outcome.profile.solution_sha256 != files.file_sha256(solution.path):
        raise MachineFailed(f"{manifest.context}: the outcome is no profile of this version; profile it again.")
    if odd := next((name for name in outcome.files if not _REPORT.fullmatch(name)), None):
        raise MachineFailed(f"{manifest.context}: a report is named {odd!r}, which is no name; profile it again.")
    for name, content in outcome.files.items():
        files.write_file(campaign.folder / PROFILES / name, content)
    return outcome.profile


def measure_in_context(project: Project, manifest: Manifest, tell: Tell) -> None:
    """Measure the machine of the manifest's context, unless it was, and check that it serves the campaign.

    Raises:
        Misuse: there is no such context, or the language cannot run on such a target.
        MachineLacks: the machine cannot be reached or lacks something.
    """
    result = _run(project, manifest, Job(kind="measure", manifest=_travelling(manifest)), tell)
    _keep_measurement(project, result.outcome.measurement)


def screen_in_context(
    project: Project,
    manifest: Manifest,
    best: Solution,
    contenders: Mapping[int, Path],
    tell: Tell,
    *,
    language: str,
    sets: tuple[WorkloadSet, ...],
    seconds: float,
) -> ScreenResults:
    """Time contenders beside the best version on the machine of the manifest's context.

    Raises:
        Misuse: there is no such context.
        MachineLacks: the machine cannot be reached or lacks something.
        MachineFailed: the outcome is not that of this screen.
    """
    job = Job(
        kind="screen",
        manifest=_travelling(manifest),
        best=best.name,
        sets=sets,
        contenders={number: f"contenders/{number}/{path.name}" for number, path in contenders.items()},
        language=language,
        seconds=seconds,
    )
    screen = _run(project, manifest, job, tell, best=best.path, contenders=contenders).outcome.screen
    if screen is None or set(screen.results) != set(contenders):
        raise MachineFailed(
            f"{manifest.context}: the outcome is no screen of these versions; go on with --resume."
        )
    return screen


def release_allocation(campaign: Campaign, tell: Tell) -> None:
    """End the allocation of the context of a campaign that is over, unless another one of the project needs it.

    If that fails it is said: the allocation then ends by itself.
    """
    project, context = campaign.project, campaign.manifest.context
    if context is None or any(
        other.manifest.context == context
        for other in closing.list_open_campaigns(project)
        if other.folder != campaign.folder
    ):
        return
    try:
        entry = find_context(project, context)
        if entry.context.slurm:
            require_trust(entry)
            SlurmConnection(entry, project.root, tell).release()
    except WarpsmithError as error:
        tell(str(error))


def _run(
    project: Project,
    manifest: Manifest,
    job: Job,
    tell: Tell,
    solution: Path | None = None,
    best: Path | None = None,
    contenders: Mapping[int, Path] = MappingProxyType({}),
) -> RemoteOutcome:
    machine = RemoteMachine(find_context(project, manifest.context or ""), tell, root=project.root)
    result = machine.run(pack_job(project, job, solution, best, contenders))
    if abs(result.skew) > SKEW_SECONDS:
        tell(f"{manifest.context}: its clock is {result.skew:+.0f} s off; the record has this machine's time")
    return result


def _owner(project: Project) -> Project:
    """Return the project that a fork for a contender belongs to, whose contexts and allocation it shares; else the
    project itself."""
    above = project.root.parents
    return find_project(above[3]) if len(above) > 3 and above[1].parts[-2:] == FORKS else project


def _subject(evaluation: Evaluation) -> tuple[str, str, str, str]:
    """Return what an evaluation is about: operator, version, target, and the definition's hash."""
    version = f"{evaluation.language}/{evaluation.version}"
    return evaluation.definition, version, evaluation.target, evaluation.provenance.definition_sha256


def _keep_measurement(project: Project, measurement: Measurement | None, judge: str | None = None) -> None:
    """Write the other machine's measurement, unless it is of another one than that which judged."""
    if measurement and judge in (None, measurement.machine.id):
        measurement_store.write_measurement(project, measurement)


def _travelling(manifest: Manifest) -> Manifest:
    """Return the manifest for the other machine, which is the local one there."""
    return manifest.model_copy(update={"context": None})
