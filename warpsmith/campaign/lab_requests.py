"""Requests to the lab: judge the version that is due, profile it, and race the best version at the end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from warpsmith.campaign import explain
from warpsmith.campaign.evidence import retimings, stored_evaluations
from warpsmith.campaign.history import final_race, solutions
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import PROFILES, Campaign
from warpsmith.campaign.jobs import send
from warpsmith.campaign.jobs.send import Conditions
from warpsmith.campaign.rounds import open_round
from warpsmith.campaign.rounds.state import CampaignState, read_state
from warpsmith.core.campaign import Manifest
from warpsmith.core.definition import Definition, WorkloadSet
from warpsmith.core.evaluation import BEST, RESTLESS, Evaluation
from warpsmith.core.evidence import Retiming
from warpsmith.core.profile import Profile
from warpsmith.core.text import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate import incumbent, judge
from warpsmith.lab.gate.request import Candidate, Request, start_judgement_host
from warpsmith.lab.machine import device_lease, hardware, measurement_store
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator import definition_file
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.ledger.store import write_model
from warpsmith.port.judge import PortJudgement, judge_port
from warpsmith.project import Project

EVERYTHING: tuple[WorkloadSet, ...] = ("representative", "full")
"""Workload sets that the baseline is judged at and the final race runs at."""


def lease_target(
    project: Project, target: str, tell: Tell, *, shared: bool = False
) -> AbstractContextManager[str]:
    """Hold a device of a target, by its id, as `lease_device` does."""
    return device_lease.lease_device(hardware.read_target_page(project, target).target, tell, shared=shared)


def judge_here(
    project: Project, manifest: Manifest, solution: Solution, tell: Tell, conditions: Conditions
) -> Evaluation:
    """Judge a version on this machine, whose device is held; raises as `lab_request` and `judge_version` do."""
    with ExitStack() as stack:

        def start_worker_host(page: HardwarePage) -> None:
            hosts.append(stack.enter_context(start_judgement_host(project, page, solution.language)))

        hosts: list[WorkerHost] = []
        request = lab_request(
            project, manifest, solution, tell, before_loading=start_worker_host, **vars(conditions)
        )
        return judge_request(request, *hosts)


def judge_request(request: Request, host: WorkerHost | None = None) -> Evaluation:
    """Judge one version, as `warpsmith.lab.gate.judge` does; a floor that proved too low is forgotten.

    `host` is a worker host for this request alone.
    """
    evaluation = judge.judge_version(request, host, last=True)
    if evaluation.decision.reason.startswith(RESTLESS):
        measurement_store.forget_noise(request.measurement.machine)
    return evaluation


def judge_solution(
    project: Project, manifest: Manifest, solution: Solution, tell: Tell, conditions: Conditions
) -> Evaluation:
    """Judge a version on this machine, or on that of the manifest's context; every judgement passes here.

    Here it waits for a lease of the device: one that it shares with other checks if nothing is timed.

    Raises:
        MissingInput: there is no such definition, or no page of the target.
        BadDefinition: the definition is wrong.
        MachineLacks: the machine cannot judge it, or cannot be reached.
    """
    if manifest.port:
        return _judge_port(project, manifest, solution, tell, conditions)
    if manifest.context is not None:
        return send.judge_in_context(project, manifest, solution, conditions, tell)
    with lease_target(project, manifest.target, tell, shared=not conditions.timed):
        return judge_here(project, manifest, solution, tell, conditions)


def _judge_port(
    project: Project, manifest: Manifest, solution: Solution, tell: Tell, conditions: Conditions
) -> Evaluation:
    """Judge a version of a port campaign on this machine's processor, which others may use meanwhile."""
    judgement = PortJudgement(
        project=project,
        file=definition_file.load_definition(project.definition_path(manifest.target_op)),
        candidate=lab_candidate(solution),
        page=hardware.read_target_page(project, manifest.target),
        sets=EVERYTHING if manifest.shapes == "full" else ("representative",),
        before=conditions.accepted.port if conditions.accepted else None,
        tell=tell,
    )
    with lease_target(project, "cpu", tell, shared=True):
        return judge_port(judgement)


def judge_due_version(campaign: Campaign, tell: Tell = lambda _: None) -> Evaluation:
    """Judge the version that is due and write the verdict.

    The baseline is timed against the peers at every workload, a later version against the best one at the
    campaign's workload set.

    Raises:
        Misuse: no version is due, or it was judged before.
        MachineLacks: the language cannot run here.
    """
    state, manifest = read_state(campaign), campaign.manifest
    due = open_round.version_to_judge(campaign)
    best = (
        solutions.find_solution(campaign.project, manifest.target_op, state.best_name) if state.best_name else None
    )
    accepted, retiming = _time_to_hold(campaign, state, tell)
    conditions = Conditions(
        best=best,
        sets=EVERYTHING if best is None or manifest.shapes == "full" else ("representative",),
        peers=manifest.peers if best is None else (),
        judgement=_count_comparisons(state),
        accepted=accepted,
    )
    evaluation = judge_solution(campaign.project, manifest, due, tell, conditions)
    if retiming:
        origin = evaluation.provenance.model_copy(update={"retiming": retiming})
        evaluation = evaluation.model_copy(update={"provenance": origin})
    open_round.record_verdict(campaign, evaluation)
    return evaluation


def _time_to_hold(campaign: Campaign, state: CampaignState, tell: Tell) -> tuple[Evaluation | None, str | None]:
    """Return what the best version's time is held against, with the path of a retiming; None at the baseline.

    If judgements of the open round keep finding it slower than that, it is timed again first.
    """
    best = next((stored for stored in state.rounds if stored.record is state.best), None)
    if best is None or campaign.manifest.port:
        return (best.record.evaluation if best else None), None
    if disagreements := retimings.open_disagreements(campaign, best, state.open.invalid):
        tell(f"{len(disagreements)} judgements found {state.best_name} slow: it is timed again, by itself")
        _time_again(campaign, best, disagreements, tell)
    return retimings.held_time(campaign, best)


def _time_again(campaign: Campaign, best: StoredRound, disagreements: tuple[Evaluation, ...], tell: Tell) -> None:
    """Time the best version as a candidate, beside the reference alone, and write what follows for its record."""
    project, manifest, own = campaign.project, campaign.manifest, best.record.evaluation
    version = solutions.find_solution(project, manifest.target_op, best.record.solution)
    definition = definition_file.load_definition(project.definition_path(manifest.target_op)).definition
    again = judge_solution(project, manifest, version, tell, Conditions(sets=timed_sets(definition, own)))
    fault = incumbent.find_retiming_fault(own, again)
    reason = (
        f"Its accepted time stays: {fault}."
        if fault
        else "It takes no more seconds than when it was accepted: the reference was slow then, not it now."
    )
    retiming = Retiming(
        record=project.relative(best.path),
        record_sha256=best.sha256,
        answers=() if incumbent.find_unfit_machine(again) else tuple(e.provenance.seed for e in disagreements),
        taken=not fault,
        reason=reason,
        evaluation=again,
    )
    path = retimings.write_retiming(campaign, best, retiming)
    tell(f"{best.record.solution}: {reason} See {project.relative(path)}.")


def timed_sets(definition: Definition, evaluation: Evaluation) -> tuple[WorkloadSet, ...]:
    """List the workload sets that were timed; for a version that failed before, the set of the rounds."""
    timed = {workload.set for workload in definition.workloads if workload.name in evaluation.timed}
    return tuple(name for name in EVERYTHING if name in timed) or ("representative",)


def _count_comparisons(state: CampaignState) -> int:
    """Count the campaign's judgements against a best version, the due one included."""
    return 1 + sum(record.evaluation.decision.against == BEST for record in state.records)


def write_verdict(project: Project, evaluation: Evaluation) -> Path:
    """Write a verdict that belongs to no campaign; return its file."""
    name = f"{evaluation.definition}-{evaluation.language}-{evaluation.version}-{evaluation.provenance.seed}.json"
    path = project.root / stored_evaluations.VERDICTS / name
    write_model(path, evaluation)
    return path


def profile_due_version(
    campaign: Campaign, tell: Tell = lambda _: None, workload: str | None = None, *, full: bool = False
) -> Profile:
    """Profile the version that is due, the best one or the new one; write the profile and the report behind it.

    A profile of the best version that the last round made, or an earlier one by counters, is used again, unless
    `workload` or `full` asks for more.
    """
    part, solution = open_round.version_to_profile(campaign)
    state = read_state(campaign)
    before = state.open.profile
    earlier = None if workload or full else _earlier_profile(state, part)
    if earlier is not None:
        tell(f"{solution.name} has not changed: its profile of {earlier.measured} is used again")
        open_round.record_profile(campaign, earlier)
        return earlier
    if workload is None and part == "profile_after" and before and before.workload:
        workload = before.workload  # counters of two workloads do not compare
    if campaign.manifest.context is not None:
        profile = send.profile_in_context(campaign, solution, tell, workload, full=full)
    else:
        with lease_target(campaign.project, campaign.manifest.target, tell):
            request = lab_request(campaign.project, campaign.manifest, solution, tell)
            profile = explain.explain_version(request, campaign.folder / PROFILES, workload, full=full)
    open_round.record_profile(campaign, profile)
    return profile


def _earlier_profile(state: CampaignState, part: str) -> Profile | None:
    """Profile of the best version that the last round made, else its last one by hardware counters.

    Older timings have drifted, so they are measured again.
    """
    if part != "profile" or state.best is None:
        return None
    if state.carried_profile:
        return state.carried_profile
    profiles = [
        profile for record in state.records for profile in (record.profile, record.profile_after) if profile
    ]
    matching = [
        p for p in profiles if p.evidence == "counters" and p.solution_sha256 == state.best.snapshot_sha256
    ]
    return matching[-1] if matching else None


def run_final_race(campaign: Campaign, tell: Tell = lambda _: None) -> Evaluation:
    """Race the best version against the reference and the peers on every workload, and write the result.

    Raises:
        MissingInput: no version was accepted yet.
    """
    state, manifest = read_state(campaign), campaign.manifest
    if manifest.port:
        raise Misuse(
            f"{campaign.name} is a port campaign: nothing is timed, so there is no race; run `warpsmith report`."
        )
    if state.best_name is None:
        raise MissingInput(f"{campaign.name} has no accepted version yet; run `warpsmith next`.")
    best = solutions.find_solution(campaign.project, manifest.target_op, state.best_name)
    conditions = Conditions(sets=EVERYTHING, peers=manifest.peers)
    evaluation = judge_solution(campaign.project, manifest, best, tell, conditions)
    final_race.write_final_race(campaign, evaluation)
    send.release_allocation(campaign, tell)
    return evaluation


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
    judgement: int = 1,
    accepted: Evaluation | None = None,
    before_loading: Callable[[HardwarePage], None] = lambda _: None,
) -> Request:
    """Build a request to the lab; if it is timed, measure what was not measured of this machine.

    `best`, `sets`, `peers`, `timed`, `judgement` and `accepted` are fields of `Request`; the others come from the
    manifest. `before_loading` is called once nothing more is measured, before the definition is loaded, which
    imports PyTorch.

    Raises:
        MissingInput: there is no such definition, or no page of the target.
        BadDefinition: the definition is wrong.
    """
    page = hardware.read_target_page(project, manifest.target)
    if timed:
        measured = measurement.ensure_measurement(project, page.target, tell)
    else:
        measured = measurement.stored_measurement(project, page.target)
    before_loading(page)
    return Request(
        project=project,
        file=definition_file.load_definition(project.definition_path(manifest.target_op)),
        candidate=lab_candidate(solution),
        page=page,
        measurement=measured,
        best=lab_candidate(best) if best else None,
        sets=sets,
        peers=peers,
        timed=timed,
        objective=manifest.objective,
        thresholds=manifest.thresholds,
        judgement=judgement,
        accepted=accepted,
        tell=tell,
    )


def lab_candidate(solution: Solution) -> Candidate:
    """Convert a version to the lab's model of a candidate."""
    return Candidate(path=solution.path, language=solution.language, version=solution.version)


def locate_version(project: Project, path: Path) -> tuple[str, Solution]:
    """Find the operator and the version of a file from its path.

    Raises:
        MissingInput: there is no such file.
        Misuse: it is a folder, or its path is not `kernels/<op>/<language>/v<N><suffix>`.
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
        folder = project.relative(project.kernels)
        raise Misuse(f"{path} is no version of an operator; put it at {folder}/<op>/<language>/v<N>.") from error
    if solution.path != path:
        raise Misuse(f"{path}: a {language} version ends in `{solution.path.suffix}`.")
    return op, solution
