"""Headless loop: does the step that is due until a stop condition holds or the designer is finished.

A version that a review called SUSPECT is struck once its round is closed, so that no later version builds on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from warpsmith.campaign import lab_requests
from warpsmith.campaign.history import store
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import attempts, lessons, open_round, resume, state
from warpsmith.campaign.rounds.due_phase import DuePhase, find_due_phase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan
from warpsmith.core.text import Tell
from warpsmith.driver import suspect
from warpsmith.driver.contenders.contenders_round import ContendersRound
from warpsmith.driver.contenders.fork import adopt_forks
from warpsmith.driver.designer import ContenderDesigner, Designer
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import AgentStopped, CorruptRecord, MachineFailed, Misuse
from warpsmith.project import Project

MOST_INVALID = 3
"""Failures of the machine at one verdict after which the loop stops."""


@dataclass(frozen=True)
class LoopProgress:
    """Callbacks by which the loop reports its progress."""

    begin: Callable[[DuePhase], None] = lambda _: None
    """Receives a step that begins."""
    tell: Tell = lambda _: None
    """Receives a line about the current step."""
    end: Callable[[DuePhase, str], None] = lambda _, __: None
    """Receives a finished step and its result in a few words."""


def run_loop(
    campaign: Campaign, designer: Designer, progress: LoopProgress | None = None, contenders: int = 1
) -> CampaignState:
    """Run the loop under the campaign's lock; first repair what an earlier run left.

    Args:
        campaign: the campaign.
        designer: source of its proposals; a `ContenderDesigner` for more than one contender.
        progress: callbacks for its progress.
        contenders: number of versions that a round designs at once; the baseline is designed alone.

    Raises:
        Busy: another process holds the campaign.
        MachineFailed: the machine failed the same judgement `MOST_INVALID` times.
        AgentStopped: the designer's budget is spent, its API failed, or all its attempts at a step were refused.
        WarpsmithError: a step failed; everything before it is on disk.
    """
    progress = progress or LoopProgress()
    with store.hold_campaign(campaign, f"optimize with the {designer.name} designer"):
        resume.resume_campaign(campaign)
        suspect.strike_suspect(campaign)
        earlier = len(state.read_state(campaign).open.invalid)  # failures of an earlier run do not count
        while True:
            current = state.read_state(campaign)
            step = find_due_phase(current)
            if step.phase == "REPORT" or (current.open.last() is None and designer.finished(current)):
                return current
            if len(current.open.invalid) - earlier >= MOST_INVALID:
                last = current.open.invalid[-1].decision.reason.rstrip(".")
                raise MachineFailed(f"The machine failed {MOST_INVALID} judgements, most recently: {last}.")
            progress.begin(step)
            if step.step == "plan" and contenders > 1 and not current.open.contenders:
                _plan_contenders(campaign, designer, step, progress, contenders)
                continue
            progress.end(step, _do_step(campaign, designer, current, step, progress.tell))
            earlier = 0 if step.phase == "LEARN" else earlier


def list_unfinished(project: Project, op: str, target: str | None) -> list[Campaign]:
    """List the campaigns of an operator that a run would continue, the newest first.

    A campaign is over if only its report is due, or if its best version was raced and no round is open.
    """
    campaigns = [
        c
        for c in store.list_campaigns(project)
        if c.manifest.target_op == op and target in (None, c.manifest.target)
    ]
    newest = sorted(campaigns, key=_age, reverse=True)
    return [campaign for campaign in newest if not _is_over(campaign)]


def _age(campaign: Campaign) -> tuple[str, float]:
    return campaign.manifest.created, (campaign.folder / store.MANIFEST).stat().st_mtime


def _is_over(campaign: Campaign) -> bool:
    try:
        current = state.read_state(campaign)
        empty = current.open.last() is None and not current.open.invalid and not current.open.attempts
        raced = current.final is not None and empty
        return raced or find_due_phase(current).step == "report"
    except CorruptRecord:
        return False  # `resume` repairs it


def _do_step(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase, tell: Tell) -> str:
    """Do one step; returns its result in a few words."""
    if step.step in _PROPOSALS:
        return _propose(campaign, designer, current, step)
    match step.step:
        case "profile" | "profile_after":
            profile = lab_requests.profile_due_version(campaign, tell)
            return f"{profile.bottleneck}: {profile.root_cause}"
        case "verdict":
            decision = lab_requests.judge_due_version(campaign, tell).decision
            opened = state.read_state(campaign).open
            return (
                attempts.describe_attempts(opened.attempt_count)
                if opened.verdict is None and opened.attempt_count > current.open.attempt_count
                else f"{decision.verdict}: {decision.reason}"
            )
        case "outcome":
            adopt_forks(campaign)  # those that a kill left
            outcome = open_round.record_outcome(campaign)
            return f"{outcome.verdict}; best {outcome.best or 'none'}" + (
                f"; {outcome.stop}" if outcome.stop else ""
            )
        case "close":
            open_round.file_round(campaign)
            return "filed"
        case other:
            raise Misuse(f"The loop has no step `{other}`.")


def _plan_contenders(
    campaign: Campaign, designer: Designer, step: DuePhase, progress: LoopProgress, count: int
) -> None:
    """Design several versions at once and take the plan of the one that the gate judges."""

    def report(line: str) -> None:
        progress.end(step, line)

    work = ContendersRound(campaign, cast("ContenderDesigner", designer), count, step, report, progress.tell)
    plan = work.run()
    report(_describe_plan(plan))


def _propose(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase) -> str:
    """Ask for a proposal and record it; a refused one is sent back while the designer has attempts left."""
    refused = ""
    for _ in range(designer.tries):
        try:
            return _PROPOSALS[step.step](campaign, designer, current, step, refused)
        except Misuse as error:
            if designer.tries == 1:
                raise
            refused = str(error)
    raise AgentStopped(f"{step.phase}: the lab refused {designer.tries} proposals, the last one: {refused}")


def _select(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase, refused: str) -> str:
    selection = designer.select(current, step, refused)
    open_round.record_selection(campaign, selection)
    return f"{selection.language}: {selection.because}"


def _plan(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase, refused: str) -> str:
    contenders = current.open.contenders
    plan = contenders.candidate.plan if contenders else designer.plan(current, step, refused)
    open_round.record_plan(campaign, plan)
    return _describe_plan(plan)


def _describe_plan(plan: Plan) -> str:
    return f"{plan.hypothesis} Predicted {plan.predicted_gain:+.0%}."


def _design(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase, refused: str) -> str:
    if current.solution is None:
        raise Misuse(f"{campaign.name}: no language is selected.")
    if not open_round.take_contender(current):
        designer.design(current, step, current.solution.path, refused)
    afterwards = state.read_state(campaign)
    if not designer.fixes and attempts.is_unchanged(current.solution, afterwards.open.attempts):
        open_round.concede_attempt(campaign)
        return f"the {designer.name} designer cannot fix {current.solution.name}, so the verdict stands"
    after = find_due_phase(afterwards)
    if after.step == "design":
        notes = " ".join(["", *after.notes]) if current.solution.path.is_file() else ""
        raise Misuse(f"The {designer.name} designer left no new version at {step.produces}.{notes}")
    return campaign.project.relative(current.solution.path)


def _learn(campaign: Campaign, designer: Designer, current: CampaignState, step: DuePhase, refused: str) -> str:
    proposal: LessonProposal = designer.learn(current, step, refused)
    record = open_round.planned_record_path(campaign)
    closed = open_round.close_round(campaign, lessons.prepare_lesson(campaign, record=record, **dict(proposal)))
    lesson, struck = closed.record.lesson, suspect.strike_suspect(campaign)
    ending = f"; {closed.record.solution} is struck" if struck else ""
    return f"{' '.join(filter(None, (lesson.action, lesson.entry)))}: {lesson.reason}{ending}"


_PROPOSALS = {"selection": _select, "plan": _plan, "design": _design, "lesson": _learn}
"""Step to the function that asks a designer for it."""
