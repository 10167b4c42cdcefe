"""What the lab does for a campaign: judge the due version, profile the due one, race the best at the end."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.campaign import explain
from warpsmith.campaign.evidence import stored_evaluations
from warpsmith.campaign.history import final_race, solutions
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import open_round, state
from warpsmith.core.campaign import Manifest
from warpsmith.core.definition import WorkloadSet
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.core.progress import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.project import Project

EVERYTHING: tuple[WorkloadSet, ...] = ("representative", "full")
"""What the baseline and the end are judged at."""

PROFILES = "profiles"
"""Where a campaign keeps the reports behind its profiles."""

__all__ = [
    "EVERYTHING",
    "judge_due_version",
    "judge_version",
    "lab_candidate",
    "lab_request",
    "locate_version",
    "profile_due_version",
    "run_final_race",
    "write_verdict",
]


def judge_due_version(campaign: Campaign, tell: Tell = lambda _: None) -> Evaluation:
    """Judge the version that is due and keep the verdict.

    The baseline is raced against the peers at every workload; later versions against the best one at
    the campaign's set.

    Raises:
        Misuse: nothing is to be judged, or the version was judged already.
        MachineLacks: the language cannot run here.
    """
    now, manifest = state.read_state(campaign), campaign.manifest
    due = open_round.version_to_judge(campaign)
    best = solutions.find_solution(campaign.project, manifest.target_op, now.best_name) if now.best_name else None
    evaluation = judge_version(
        lab_request(
            campaign.project, manifest, due, tell,
            best=best,
            sets=EVERYTHING if best is None or manifest.shapes == "full" else ("representative",),
            peers=manifest.peers if best is None else (),
        )
    )  # fmt: skip
    open_round.record_verdict(campaign, evaluation)
    return evaluation


def write_verdict(project: Project, evaluation: Evaluation) -> Path:
    """Keep a verdict that belongs to no campaign; returns its file."""
    name = f"{evaluation.definition}-{evaluation.language}-{evaluation.version}-{evaluation.provenance.seed}.json"
    path = project.root / stored_evaluations.VERDICTS / name
    files.write_file(path, evaluation.model_dump_json(indent=2) + "\n")
    return path


def profile_due_version(
    campaign: Campaign, tell: Tell = lambda _: None, workload: str | None = None, *, full: bool = False
) -> Profile:
    """Profile the version that is due, the best one or the new one, and keep the summary and what it rests on.

    Counters of the best version that this campaign has read already are taken again, unless more is asked for.
    """
    step, solution = open_round.version_to_profile(campaign)
    now = state.read_state(campaign)
    before = now.open.profile
    known = None if workload or full else _read_before(now, step)
    if known is not None:
        tell(f"{solution.name} has not changed: its profile of {known.measured} stands")
        open_round.record_profile(campaign, known)
        return known
    if workload is None and step == "profile_after" and before and before.workload:
        workload = before.workload  # counters of two workloads do not compare
    asked = lab_request(campaign.project, campaign.manifest, solution, tell)
    found = explain.explain_version(asked, campaign.folder / PROFILES, workload, full=full)
    open_round.record_profile(campaign, found)
    return found


def _read_before(now: state.CampaignState, step: str) -> Profile | None:
    """The last profile of the best version by hardware counters; timings alone drift, so they are made anew."""
    if step != "profile" or now.best is None:
        return None
    kept = [profile for record in now.records for profile in (record.profile, record.profile_after) if profile]
    mine = [p for p in kept if p.evidence == "counters" and p.solution_sha256 == now.best.snapshot_sha256]
    return mine[-1] if mine else None


def run_final_race(campaign: Campaign, tell: Tell = lambda _: None) -> Evaluation:
    """Race the best version against the reference and the peers on every workload, and keep it.

    Raises:
        MissingInput: no version was accepted yet.
    """
    now, manifest = state.read_state(campaign), campaign.manifest
    if now.best_name is None:
        raise MissingInput(f"{campaign.name} has no accepted version yet; run `warpsmith next`.")
    best = solutions.find_solution(campaign.project, manifest.target_op, now.best_name)
    found = judge_version(
        lab_request(campaign.project, manifest, best, tell, sets=EVERYTHING, peers=manifest.peers)
    )
    final_race.write_final_race(campaign, found)
    return found


def lab_request(
    project: Project,
    manifest: Manifest,
    solution: Solution,
    tell: Tell,
    *,
    best: Solution | None = None,
    sets: tuple[WorkloadSet, ...] = ("representative",),
    peers: tuple[str, ...] = (),
    timed: bool = True,
) -> Request:
    """What the lab is asked, with this machine's ceilings and A/A floor measured where they are not yet.

    `best`, `sets`, `peers` and `timed` are as `Request` says; the rest of it comes from the manifest.

    Raises:
        MissingInput: there is no such definition, or no page of the target.
        BadDefinition: the definition is wrong.
    """
    page = hardware.read_hardware_page(project, manifest.target)
    return Request(
        project=project,
        file=definition_file.load_definition(project.definition_path(manifest.target_op)),
        candidate=lab_candidate(solution),
        page=page,
        measurement=measurement.ensure_measurement(project, page.target, tell),
        best=lab_candidate(best) if best else None,
        sets=sets,
        peers=peers,
        timed=timed,
        objective=manifest.objective,
        thresholds=manifest.thresholds,
        tell=tell,
    )


def lab_candidate(solution: Solution) -> Candidate:
    """A version as the lab takes it."""
    return Candidate(path=solution.path, language=solution.language, version=f"v{solution.version}")


def locate_version(project: Project, path: Path) -> tuple[str, Solution]:
    """The operator and version that a file is of, by where it lies.

    Raises:
        MissingInput: there is no such file.
        Misuse: it is a folder, or does not lie at `kernels/<op>/<language>/v<N><suffix>`.
    """
    path = path.resolve()
    if path.is_dir():
        raise Misuse(f"{path} is a folder; name the file of a version in it.")
    if not path.is_file():
        raise MissingInput(f"{path} does not exist.")
    try:
        op, language, name = path.relative_to(project.kernels).parts
        solution = solutions.find_solution(project, op, f"{language}/{Path(name).stem}")
    except (ValueError, Misuse) as error:
        place = project.relative(project.kernels)
        raise Misuse(f"{path} is no version of an operator; put it at {place}/<op>/<language>/v<N>.") from error
    if solution.path != path:
        raise Misuse(f"{path}: a {language} version ends in `{solution.path.suffix}`.")
    return op, solution
