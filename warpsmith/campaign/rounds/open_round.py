"""The open round: each part is written when its phase is due; then the round closes, safe against crashes.

Callers hold `hold_campaign`. The lesson's file is the point of no return: after it `file_round` only completes
what is missing, in this order: record, knowledge entry, commit, removal of the open round.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith import files
from warpsmith.campaign import experiment, texts, tries
from warpsmith.campaign.history import lineage, manifests, records, solutions, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import attempts, evaluate, lessons, stagnation
from warpsmith.campaign.rounds.due_phase import find_due_phase
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.campaign.rounds.state import CampaignState, read_state
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Contenders, EntryDraw, Plan, RoundOutcome, RoundRecord, Selection
from warpsmith.core.claims.quantities import Quantities
from warpsmith.core.evaluation import Evaluation, Verdict
from warpsmith.core.profile import Profile
from warpsmith.errors import Misuse
from warpsmith.lab.machine import hardware
from warpsmith.ledger.store import RECORD
from warpsmith.port.obstacle import port_obstacle

REVISABLE = ("profile", "selection", "plan", "profile_after", "outcome")
"""Parts that may be replaced until the next one is written. A verdict and a lesson are final."""

BASELINE_PLAN = Plan(
    hypothesis="A correct first version, as the baseline to improve on.",
    category="baseline",
    predicted_gain=0,
    metric="time_us",
    expected_change=0,
)
"""The plan in the record of a baseline round."""


def version_to_judge(campaign: Campaign) -> Solution:
    """Return the version that VERIFY judges next.

    Raises:
        Misuse: VERIFY is not due, or the version was judged before.
    """
    state = read_state(campaign)
    if state.solution and state.solution.path.is_file() and not state.open.verdict:
        solutions.refuse_duplicate(state.solution, state.rounds)
        if attempts.is_unchanged(state.solution, state.open.attempts):
            raise Misuse(
                f"{state.solution.path} has not changed. {attempts.describe_attempts(state.open.attempt_count)}"
            )
        solutions.refuse_lost(state.solution, state.lost)
    return _due_version(state)


def version_to_profile(campaign: Campaign) -> tuple[str, Solution]:
    """Return the profile that is due, `profile` or `profile_after`, and its version; raises Misuse."""
    if campaign.manifest.port:
        raise Misuse(
            f"{campaign.name} is a port campaign: no device runs its versions, so none is profiled; `warpsmith"
            f" assembly FILE --target {campaign.manifest.target}` shows the machine code."
        )
    state = read_state(campaign)
    name = next((n for n in ("profile", "profile_after") if _is_due(state, n)), "profile")
    _require(state, name)
    version = state.best_name if name == "profile" else state.solution and state.solution.name
    return name, solutions.find_solution(campaign.project, campaign.manifest.target_op, version or "")


def record_profile(campaign: Campaign, profile: Profile) -> None:
    """Finish PROFILE, or the profile of the new version, whichever is due.

    Raises:
        Misuse: neither is due, or the profile belongs to another version.
    """
    name, solution = version_to_profile(campaign)
    state = read_state(campaign)
    sha256 = state.best.snapshot_sha256 if state.best else ""
    if name == "profile_after" and state.open.verdict:
        sha256 = state.open.verdict.provenance.solution_sha256
    if f"{profile.language}/{profile.version}" != solution.name or profile.solution_sha256 != sha256:
        raise Misuse(
            f"The profile is of {profile.language}/{profile.version} ({profile.solution_sha256[:12]}), not of"
            f" {solution.name} ({sha256[:12]}) as it was judged; put that file back and profile it."
        )
    campaign.write_part(name, profile)


def record_selection(campaign: Campaign, selection: Selection) -> None:
    """Finish SELECT; raises Misuse if it is not due, the language is unknown, or the reason invents a figure."""
    state = read_state(campaign)
    _require(state, "selection")
    texts.refuse_faults(campaign.project, {"reason for the language": selection.because}, round_quantities(state))
    _refuse_unportable(campaign, selection.language)
    if state.open.profile is None and state.carried_profile:
        campaign.write_part("profile", state.carried_profile)
    solutions.due_solution(campaign.project, campaign.manifest.target_op, selection.language, state.rounds)
    campaign.write_part("selection", selection)


def _refuse_unportable(campaign: Campaign, language: str) -> None:
    """Raise Misuse for a language whose versions a port campaign cannot judge."""
    if campaign.manifest.port:
        page = hardware.read_target_page(campaign.project, campaign.manifest.target)
        if obstacle := port_obstacle(language, page):
            raise Misuse(obstacle)


def record_plan(campaign: Campaign, plan: Plan) -> None:
    """Finish STRATEGIZE.

    Raises:
        Misuse: it is not due, stagnation demands more, a text invents a figure, no such entry is visible, or a
            contender was chosen and this is not its plan.
    """
    state = read_state(campaign)
    _refuse_plan(state, plan)
    campaign.write_part("plan", plan)


def _refuse_plan(state: CampaignState, plan: Plan) -> None:
    campaign = state.campaign
    _require(state, "plan")
    contenders = state.open.contenders
    if contenders and plan != contenders.candidate.plan:
        raise Misuse(
            f"Contender {contenders.chosen} of this round was chosen, so its plan stands;"
            f" go on with `warpsmith optimize {campaign.manifest.target_op} --resume`."
        )
    if plan.entries:
        experiment.load_catalog(campaign.project, campaign).require(plan.entries)
    texts.refuse_faults(campaign.project, texts.plan_texts(plan), round_quantities(state, plan))
    if state.open.selection:
        stagnation.refuse_plan(state.stagnation, state.visible, plan, state.open.selection)


def record_contenders(campaign: Campaign, contenders: Contenders, copies: Mapping[str, bytes]) -> None:
    """Record the contenders of the round with the files in `copies`, by name, and take the chosen one's plan.

    Raises:
        Misuse: the plan is not due, or it is refused.
    """
    _refuse_plan(read_state(campaign), contenders.candidate.plan)
    for name, content in copies.items():
        files.write_file(campaign.open / name, content)
    campaign.write_part("contenders", contenders)
    record_plan(campaign, contenders.candidate.plan)


def take_contender(state: CampaignState) -> bool:
    """Write the version of the chosen contender to its place; False if there is none, or the gate had it."""
    contenders, solution = state.open.contenders, state.solution
    if contenders is None or contenders.candidate.copy_name is None or solution is None or state.open.attempts:
        return False
    files.write_file(solution.path, (state.campaign.open / contenders.candidate.copy_name).read_bytes())
    return True


def record_verdict(campaign: Campaign, evaluation: Evaluation) -> None:
    """Write a verdict and a copy of the judged file.

    After an INVALID one VERIFY stays due; after an attempt that did not build the same version is due again.

    Raises:
        Misuse: VERIFY is not due, or the evaluation belongs to another version or definition.
    """
    state = read_state(campaign)
    solution = _due_version(state)
    _refuse_unrelated(state, solution, evaluation)
    if evaluation.decision.verdict is Verdict.INVALID:
        campaign.write_part(f"invalid-{len(state.open.invalid) + 1}", evaluation)
        return
    if attempts.is_attempt(evaluation, state.open.attempt_count):
        campaign.write_part(f"attempt-{state.open.attempt_count + 1}", evaluation)
        return
    _write_verdict(campaign, solution, evaluation)


def concede_attempt(campaign: Campaign) -> None:
    """Turn the last attempt into the round's verdict, for designers that cannot fix a version.

    Raises:
        Misuse: there is no attempt, or the file has changed since.
    """
    state = read_state(campaign)
    if (
        state.solution is None
        or state.open.verdict
        or not attempts.is_unchanged(state.solution, state.open.attempts)
    ):
        raise Misuse(f"{campaign.name} has no failed attempt to concede; run `warpsmith next`.")
    _write_verdict(campaign, state.solution, state.open.attempts[-1])


def _write_verdict(campaign: Campaign, solution: Solution, evaluation: Evaluation) -> None:
    source = solution.path.read_bytes()
    files.write_file(campaign.open / solution.snapshot, source)
    if files.file_sha256(campaign.open / solution.snapshot) != evaluation.provenance.solution_sha256:
        raise Misuse(f"{solution.path} changed while it was judged; judge it again.")
    campaign.write_part("verdict", evaluation)


def record_outcome(campaign: Campaign) -> RoundOutcome:
    """Finish EVALUATE; raises Misuse if it is not due."""
    state = read_state(campaign)
    _require(state, "outcome")
    verdict = state.open.verdict
    if verdict is None:
        raise Misuse("There is no verdict to evaluate; run `warpsmith next`.")
    plan = state.open.plan or BASELINE_PLAN
    outcome = evaluate.evaluate_outcome(state, verdict, plan, state.open.profile, state.open.profile_after)
    campaign.write_part("outcome", outcome)
    return outcome


def planned_record_path(campaign: Campaign) -> str:
    """Path that the open round's record will have in the project; raises Misuse unless LEARN is due."""
    state = read_state(campaign)
    _require(state, "lesson")
    return campaign.project.relative(campaign.ledger.folder_of(state.number) / RECORD)


def close_round(campaign: Campaign, lesson: PreparedLesson) -> StoredRound:
    """Finish LEARN: close the open round with its lesson.

    Raises:
        Misuse: LEARN is not due, or the version's file is no longer the one that was judged.
        BadEntry: a text states a figure that no record supports, or contradicts the verdict.
    """
    state = read_state(campaign)
    _require(state, "lesson")
    solution, verdict = state.solution, state.open.verdict
    if solution is None or verdict is None:
        raise Misuse("There is no verdict to learn from; run `warpsmith next`.")
    if not records.has_content(solution.path, verdict.provenance.solution_sha256):
        copy = campaign.project.relative(campaign.open / solution.snapshot)
        raise Misuse(
            f"{solution.path} is not the file that was judged; put {copy} back in its place and keep the"
            " edit for the next version."
        )
    accepted = verdict.decision.verdict.accepted
    texts.refuse_faults(campaign.project, lessons.prepared_texts(lesson), round_quantities(state), accepted)
    campaign.write_part("lesson", lesson)
    stored = file_round(campaign)
    if stored is None:
        raise AssertionError("a lesson was written and is gone")
    return stored


def file_round(campaign: Campaign) -> StoredRound | None:
    """File the open round if it has a lesson; finished actions are not repeated.

    Raises:
        CorruptRecord: a file of the campaign is corrupt.
        Misuse: the knowledge or git refuses; the round stays open until that is corrected.
    """
    state = read_state(campaign)
    lesson = state.open.lesson
    if lesson is None:
        return None
    stored = state.filed_round or _publish(state, lesson)
    lessons.apply_lesson(campaign, stored, lesson)
    if campaign.manifest.git == "branch":
        lineage.sync_branch(campaign)
    campaign.drop_open()
    return stored


def round_quantities(state: CampaignState, plan: Plan | None = None) -> Quantities:
    """Collect what the campaign's records and the open round support; `plan` is the one to be recorded."""
    opened = state.open
    parts = (
        state.current_profile,
        opened.contenders,
        plan or opened.plan,
        opened.verdict,
        opened.profile_after,
        opened.outcome,
    )
    return texts.quantities_of(state.campaign.manifest, *state.records, *parts)


def _publish(state: CampaignState, lesson: PreparedLesson) -> StoredRound:
    campaign, opened, solution = state.campaign, state.open, state.solution
    if opened.verdict is None or opened.outcome is None or solution is None:
        raise campaign.ledger.corrupt(campaign.open, "has a lesson but lacks an earlier part")
    record = RoundRecord(
        campaign=campaign.name,
        round=state.number,
        solution=solution.name,
        parent=state.best_name,
        snapshot=solution.snapshot,
        snapshot_sha256=opened.verdict.provenance.solution_sha256,
        profile=opened.profile,
        selection=opened.selection or Selection(language=solution.language, because="The campaign starts in it."),
        plan=opened.plan or BASELINE_PLAN,
        evaluation=opened.verdict,
        profile_after=opened.profile_after,
        outcome=opened.outcome,
        lesson=lesson.lesson,
        attempts=opened.attempt_count + (opened.verdict not in opened.attempts),
        tried=_count_tried(state),
        contenders=opened.contenders.contenders if opened.contenders else (),
        draw=_fitting_draw(state, solution.language),
        spent=opened.spent,
        opened=state.records[-1].closed if state.rounds else campaign.manifest.created,
        closed=this_minute(),
        previous_sha256=state.rounds[-1].sha256 if state.rounds else None,
        manifest_sha256=files.file_sha256(campaign.folder / manifests.MANIFEST),
    )
    snapshot = campaign.open / solution.snapshot
    if not records.has_content(snapshot, record.snapshot_sha256):
        raise campaign.ledger.corrupt(snapshot, "is not the file that was judged")
    paths = [
        path for kind in ("invalid-*.json", "attempt-*.json", "contender-*") for path in campaign.open.glob(kind)
    ]
    attached = {path.name: path.read_bytes() for path in sorted(paths)}
    return campaign.ledger.publish(record.round, record, {**attached, record.snapshot: snapshot.read_bytes()})


def _fitting_draw(state: CampaignState, language: str) -> EntryDraw | None:
    """Return the entries that fit the operator and the profile's bottleneck best; None without an experiment."""
    profile = state.open.profile
    words = [*state.campaign.manifest.target_op.split("_"), *(profile.root_cause.split() if profile else ())]
    return experiment.fitting_draw(state.campaign, words, language)


def _count_tried(state: CampaignState) -> int:
    """Count the variants that ran between the plan, or the round before at a baseline, and the verdict."""
    campaign, manifest = state.campaign, state.campaign.manifest
    plan, verdict = campaign.open / "plan.json", campaign.open / "verdict.json"
    before = state.rounds[-1].path if state.rounds else campaign.folder / store.MANIFEST
    since = (plan if plan.is_file() else before).stat().st_mtime
    until = verdict.stat().st_mtime
    return tries.count_variants(campaign.project, manifest.target_op, manifest.target, since, until)


def _due_version(state: CampaignState) -> Solution:
    _require(state, "verdict")
    if state.solution is None:
        raise Misuse("No language is selected yet; run `warpsmith next`.")
    return state.solution


def _refuse_unrelated(state: CampaignState, solution: Solution, evaluation: Evaluation) -> None:
    manifest = state.campaign.manifest
    due = (manifest.target_op, manifest.target, solution.name)
    judged = (evaluation.definition, evaluation.target, f"{evaluation.language}/{evaluation.version}")
    if judged != due:
        raise Misuse(f"The verdict is of {', '.join(judged)}, but {', '.join(due)} is due; judge that.")
    if fault := records.misplaced_verdict(manifest, evaluation):
        raise Misuse(f"{state.campaign.name} {fault}; judge the version again.")
    if not records.has_content(solution.path, evaluation.provenance.solution_sha256):
        raise Misuse(f"{solution.path} changed while it was judged; judge it again.")
    first = state.records[0].evaluation.provenance.definition_sha256 if state.rounds else None
    if first and evaluation.provenance.definition_sha256 != first:
        raise Misuse(
            f"The definition of {manifest.target_op} has changed since {state.campaign.name} began, so its rounds"
            f" do not compare; put it back, or mend it for good with `warpsmith amend {state.campaign.name}`."
        )


def _is_due(state: CampaignState, name: str) -> bool:
    if state.closure:
        return False
    if name == "profile" and state.open.last() is None and state.carried_profile and not state.stop:
        return True  # it is carried from the last round, and may be printed or made again
    revisable = name in REVISABLE and state.open.last() == name and not state.filed_round
    return revisable or find_due_phase(state).step == name


def _require(state: CampaignState, name: str) -> None:
    if closure := state.closure:
        raise Misuse(f"{state.campaign.name} was {closure.text}; nothing more is recorded in it.")
    if not _is_due(state, name):
        due = find_due_phase(state)
        action = f"run `{due.command}`" if due.command else f"write {due.produces}"
        raise Misuse(f"{state.campaign.name} is at {due.phase} of round {due.round}: first {action}.")
