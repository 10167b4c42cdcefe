"""The open round's steps, each written once it is due; and its closing, which a crash may interrupt anywhere.

Callers hold `lock.hold`. The lesson's file is the point of no return: from there on `file_round` only
repeats what is missing (record, knowledge entry, commit, removal of the open round), in that order.
"""

from __future__ import annotations

from warpsmith import files
from warpsmith.campaign.history import lineage, records, solutions
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import evaluate, lessons, stagnation, state
from warpsmith.campaign.rounds.lessons import Learned
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import next_step
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Outcome, Plan, RoundRecord, Selection
from warpsmith.core.evaluation import Evaluation, Verdict
from warpsmith.core.profile import Profile
from warpsmith.errors import Misuse

REVISABLE = ("profile", "selection", "plan", "profile_after", "outcome")
"""Steps that may be done again until the next one is; a verdict and a lesson stand."""

BASELINE_PLAN = Plan(
    hypothesis="A correct first version, as the baseline to improve on.",
    category="baseline",
    predicted_gain=0,
    metric="time_us",
    expected_change=0,
)
"""What a baseline round's record holds for a plan."""


def to_judge(campaign: Campaign) -> Solution:
    """The version that VERIFY is to judge.

    Raises:
        Misuse: VERIFY is not due, or the version is one that was judged already.
    """
    now = state.read(campaign)
    if now.solution and now.solution.path.is_file() and not now.open.verdict:
        solutions.refuse_duplicate(now.solution, now.rounds)
    return _judged(now)


def to_profile(campaign: Campaign) -> tuple[str, Solution]:
    """The profile that is due, `profile` or `profile_after`, and the version it is of; raises Misuse."""
    now = state.read(campaign)
    name = next((n for n in ("profile", "profile_after") if _is_due(now, n)), "profile")
    _require(now, name)
    of = now.best_name if name == "profile" else now.solution and now.solution.name
    return name, solutions.at(campaign.project, campaign.manifest.target_op, of or "")


def record_profile(campaign: Campaign, profile: Profile) -> None:
    """Finish PROFILE, or the profile of the new version, whichever is due.

    Raises:
        Misuse: neither is, or the profile is not of the version it should be of.
    """
    name, solution = to_profile(campaign)
    now = state.read(campaign)
    sha256 = now.best.snapshot_sha256 if now.best else ""
    if name == "profile_after" and now.open.verdict:
        sha256 = now.open.verdict.provenance.solution_sha256
    if f"{profile.language}/{profile.version}" != solution.name or profile.solution_sha256 != sha256:
        raise Misuse(
            f"The profile is of {profile.language}/{profile.version} ({profile.solution_sha256[:12]}), not of"
            f" {solution.name} ({sha256[:12]}) as it was judged; put that file back and profile it."
        )
    campaign.write_step(name, profile)


def record_selection(campaign: Campaign, selection: Selection) -> None:
    """Finish SELECT; raises Misuse where it is not due or the language is unknown."""
    now = state.read(campaign)
    _require(now, "selection")
    solutions.expected(campaign.project, campaign.manifest.target_op, selection.language, now.rounds)
    campaign.write_step("selection", selection)


def record_plan(campaign: Campaign, plan: Plan) -> None:
    """Finish STRATEGIZE; raises Misuse where it is not due or stagnation asks for more."""
    now = state.read(campaign)
    _require(now, "plan")
    if now.open.selection:
        stagnation.refuse_plan(now.stagnation, now.visible, plan, now.open.selection)
    campaign.write_step("plan", plan)


def record_verdict(campaign: Campaign, evaluation: Evaluation) -> None:
    """Keep a verdict, and a copy of what was judged; an INVALID one leaves VERIFY due.

    Raises:
        Misuse: VERIFY is not due, or the evaluation is not of the version and definition it should be of.
    """
    now = state.read(campaign)
    solution = _judged(now)
    _refuse_stranger(now, solution, evaluation)
    if evaluation.decision.verdict is Verdict.INVALID:
        campaign.write_step(f"invalid-{len(now.open.invalid) + 1}", evaluation)
        return
    source = solution.path.read_bytes()
    files.write(campaign.open / solution.snapshot, source)
    if files.sha256(campaign.open / solution.snapshot) != evaluation.provenance.solution_sha256:
        raise Misuse(f"{solution.path} changed while it was judged; judge it again.")
    campaign.write_step("verdict", evaluation)


def record_outcome(campaign: Campaign) -> Outcome:
    """Finish EVALUATE; raises Misuse where it is not due."""
    now = state.read(campaign)
    _require(now, "outcome")
    verdict = now.open.verdict
    if verdict is None:
        raise Misuse("There is no verdict to evaluate; run `warpsmith next`.")
    plan = now.open.plan or BASELINE_PLAN
    outcome = evaluate.outcome(now, verdict, plan, now.open.profile, now.open.profile_after)
    campaign.write_step("outcome", outcome)
    return outcome


def to_learn(campaign: Campaign) -> str:
    """The place that the open round's record will have in the project; raises Misuse unless LEARN is due."""
    now = state.read(campaign)
    _require(now, "lesson")
    return campaign.project.relative(records.folder_of(campaign.rounds, now.number) / records.RECORD)


def close(campaign: Campaign, learned: Learned) -> Kept:
    """LEARN: close the open round with its lesson.

    Raises:
        Misuse: LEARN is not due, or the version's file is no longer the one that was judged.
    """
    now = state.read(campaign)
    _require(now, "lesson")
    solution, verdict = now.solution, now.open.verdict
    if solution is None or verdict is None:
        raise Misuse("There is no verdict to learn from; run `warpsmith next`.")
    if not records.sound_snapshot(solution.path, verdict.provenance.solution_sha256):
        copy = campaign.project.relative(campaign.open / solution.snapshot)
        raise Misuse(
            f"{solution.path} is not the file that was judged; put {copy} back in its place and keep the"
            " edit for the next version."
        )
    campaign.write_step("lesson", learned)
    kept = file_round(campaign)
    if kept is None:
        raise AssertionError("a lesson was written and is gone")
    return kept


def file_round(campaign: Campaign) -> Kept | None:
    """File the open round if it has a lesson; every part that is done already is left as it is.

    Raises:
        CorruptRecord: what is on disk is corrupt.
        Misuse: the knowledge or git refuses; the round stays open until it is mended.
    """
    now = state.read(campaign)
    learned = now.open.lesson
    if learned is None:
        return None
    kept = now.filed or _publish(now, learned)
    lessons.apply(campaign, kept, learned)
    if campaign.manifest.git == "branch":
        lineage.sync(campaign)
    campaign.drop_open()
    return kept


def _publish(now: State, learned: Learned) -> Kept:
    campaign, opened, solution = now.campaign, now.open, now.solution
    if opened.verdict is None or opened.outcome is None or solution is None:
        raise records.corrupt(campaign.open, "has a lesson but lacks a step before it", campaign.name)
    record = RoundRecord(
        campaign=campaign.name,
        round=now.number,
        solution=solution.name,
        parent=now.best_name,
        snapshot=solution.snapshot,
        snapshot_sha256=opened.verdict.provenance.solution_sha256,
        profile=opened.profile,
        selection=opened.selection or Selection(language=solution.language, because="The campaign starts in it."),
        plan=opened.plan or BASELINE_PLAN,
        evaluation=opened.verdict,
        profile_after=opened.profile_after,
        outcome=opened.outcome,
        lesson=learned.lesson,
        spent=opened.spent,
        opened=now.records[-1].closed if now.rounds else campaign.manifest.created,
        closed=this_minute(),
        previous_sha256=now.rounds[-1].sha256 if now.rounds else None,
    )
    snapshot = campaign.open / solution.snapshot
    if not records.sound_snapshot(snapshot, record.snapshot_sha256):
        raise records.corrupt(snapshot, "is not the file that was judged", campaign.name)
    invalid = {path.name: path.read_bytes() for path in sorted(campaign.open.glob("invalid-*.json"))}
    folder = records.folder_of(campaign.rounds, record.round)
    files.publish(records.contents(record, snapshot.read_bytes(), invalid), folder)
    return records.read(campaign.rounds, record.round, campaign.name)


def _judged(now: State) -> Solution:
    _require(now, "verdict")
    if now.solution is None:
        raise Misuse("No language is selected yet; run `warpsmith next`.")
    return now.solution


def _refuse_stranger(now: State, solution: Solution, evaluation: Evaluation) -> None:
    manifest = now.campaign.manifest
    due = (manifest.target_op, manifest.target, solution.name)
    got = (evaluation.definition, evaluation.target, f"{evaluation.language}/{evaluation.version}")
    if got != due:
        raise Misuse(f"The verdict is of {', '.join(got)}, but due is that of {', '.join(due)}; judge that.")
    if not records.sound_snapshot(solution.path, evaluation.provenance.solution_sha256):
        raise Misuse(f"{solution.path} changed while it was judged; judge it again.")
    first = now.records[0].evaluation.provenance.definition_sha256 if now.rounds else None
    if first and evaluation.provenance.definition_sha256 != first:
        raise Misuse(
            f"The definition of {manifest.target_op} has changed since {now.campaign.name} began, so its rounds"
            " do not compare; put it back, or start a new campaign."
        )


def _is_due(now: State, name: str) -> bool:
    again = name in REVISABLE and now.open.last() == name and not now.filed
    return again or next_step(now).step == name


def _require(now: State, name: str) -> None:
    if not _is_due(now, name):
        due = next_step(now)
        todo = f"run `{due.command}`" if due.command else f"write {due.produces}"
        raise Misuse(f"{now.campaign.name} is at {due.phase} of round {due.round}: first {todo}.")
