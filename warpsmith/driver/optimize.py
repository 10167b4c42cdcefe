"""The headless loop: do what `next` says until a stop condition holds or the designer is done.

A version that a review called SUSPECT is struck when its round is closed, so that no later one is built on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.campaign import work
from warpsmith.campaign.history import lock, store
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import lessons, resume, rounds, state
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep, next_step
from warpsmith.core.campaign import Plan
from warpsmith.driver import suspect
from warpsmith.driver.designer import Designer
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import AgentStopped, CorruptRecord, MachineFailed, Misuse
from warpsmith.project import Project

MOST_INVALID = 3
"""Attempts at one verdict that the machine may fail."""


@dataclass(frozen=True)
class Progress:
    """Where the loop tells what it does; both take one line."""

    begin: Callable[[NextStep], None] = lambda _: None
    """A step begins."""
    tell: Callable[[str], None] = lambda _: None
    """What is going on inside it."""
    end: Callable[[NextStep, str], None] = lambda _, __: None
    """It is done, with its result in a few words."""


def optimize(campaign: Campaign, designer: Designer, progress: Progress | None = None) -> State:
    """Run the loop under the campaign's lock; whatever an earlier run left is mended first.

    Raises:
        Busy: another process holds the campaign.
        MachineFailed: the machine failed the same judgement `MOST_INVALID` times.
        AgentStopped: the designer's budget or API ended, or all of its tries at a step were refused.
        WarpsmithError: a step refused; everything up to it is on disk.
    """
    progress = progress or Progress()
    with lock.hold(campaign, f"optimize with the {designer.name} designer"):
        resume.resume(campaign)
        suspect.strike(campaign)
        earlier = len(state.read(campaign).open.invalid)  # another run's failures are not held against this one
        while True:
            now = state.read(campaign)
            step = next_step(now)
            if step.phase == "REPORT" or (now.open.last() is None and designer.finished(now)):
                return now
            if len(now.open.invalid) - earlier >= MOST_INVALID:
                last = now.open.invalid[-1].decision.reason.rstrip(".")
                raise MachineFailed(f"The machine failed {MOST_INVALID} judgements, the last one: {last}.")
            progress.begin(step)
            progress.end(step, _do(campaign, designer, now, step, progress.tell))
            earlier = 0 if step.phase == "LEARN" else earlier


def unfinished(project: Project, op: str, target: str | None) -> list[Campaign]:
    """The campaigns of an operator that a run would go on with, the newest first.

    One is over for a run where nothing but its report is due, or where its best version was raced and no
    round is open.
    """
    found = [c for c in store.all(project) if c.manifest.target_op == op and target in (None, c.manifest.target)]
    newest = sorted(found, key=_age, reverse=True)
    return [campaign for campaign in newest if not _over(campaign)]


def _age(campaign: Campaign) -> tuple[str, float]:
    return campaign.manifest.created, (campaign.folder / store.MANIFEST).stat().st_mtime


def _over(campaign: Campaign) -> bool:
    try:
        now = state.read(campaign)
        raced = now.final is not None and now.open.last() is None and not now.open.invalid
        return raced or next_step(now).step == "report"
    except CorruptRecord:
        return False  # `resume` mends it


def _do(campaign: Campaign, designer: Designer, now: State, step: NextStep, tell: Callable[[str], None]) -> str:
    """One step; returns its result in a few words."""
    if step.step in _PROPOSALS:
        return _propose(campaign, designer, now, step)
    match step.step:
        case "profile" | "profile_after":
            found = work.profile(campaign, tell)
            return f"{found.bottleneck}: {found.root_cause}"
        case "verdict":
            decision = work.verify(campaign, tell).decision
            return f"{decision.verdict}: {decision.reason}"
        case "outcome":
            outcome = rounds.record_outcome(campaign)
            return f"{outcome.verdict}; best {outcome.best or 'none'}" + (
                f"; {outcome.stop}" if outcome.stop else ""
            )
        case "close":
            rounds.file_round(campaign)
            return "filed"
        case other:
            raise Misuse(f"The loop has no step `{other}`.")


def _propose(campaign: Campaign, designer: Designer, now: State, step: NextStep) -> str:
    """Ask for a proposal and keep it; a refused one is sent back while the designer has tries left."""
    refused = ""
    for _ in range(designer.tries):
        try:
            return _PROPOSALS[step.step](campaign, designer, now, step, refused)
        except Misuse as error:
            if designer.tries == 1:
                raise
            refused = str(error)
    raise AgentStopped(f"{step.phase}: the lab refused {designer.tries} proposals, the last one: {refused}")


def _select(campaign: Campaign, designer: Designer, now: State, step: NextStep, refused: str) -> str:
    selection = designer.select(now, step, refused)
    rounds.record_selection(campaign, selection)
    return f"{selection.language}: {selection.because}"


def _plan(campaign: Campaign, designer: Designer, now: State, step: NextStep, refused: str) -> str:
    plan = designer.plan(now, step, refused)
    _refuse_unknown(campaign, plan)
    rounds.record_plan(campaign, plan)
    return f"{plan.hypothesis} Predicted {plan.predicted_gain:+.0%}."


def _design(campaign: Campaign, designer: Designer, now: State, step: NextStep, refused: str) -> str:
    if now.solution is None:
        raise Misuse(f"{campaign.name}: no language is selected.")
    designer.design(now, step, now.solution.path, refused)
    after = next_step(state.read(campaign))
    if after.step == "design":
        why = " ".join(["", *after.notes]) if now.solution.path.is_file() else ""
        raise Misuse(f"The {designer.name} designer left no new version at {step.produces}.{why}")
    return campaign.project.relative(now.solution.path)


def _learn(campaign: Campaign, designer: Designer, now: State, step: NextStep, refused: str) -> str:
    proposal: LessonProposal = designer.learn(now, step, refused)
    record = rounds.to_learn(campaign)
    kept = rounds.close(campaign, lessons.prepare(campaign, record=record, **dict(proposal)))
    lesson, struck = kept.record.lesson, suspect.strike(campaign)
    found = f"; {kept.record.solution} is struck" if struck else ""
    return f"{' '.join(filter(None, (lesson.action, lesson.entry)))}: {lesson.reason}{found}"


_PROPOSALS = {"selection": _select, "plan": _plan, "design": _design, "lesson": _learn}
"""The steps that a designer answers."""


def _refuse_unknown(campaign: Campaign, plan: Plan) -> None:
    """Refuse a plan on entries that are not there; raises Misuse."""
    if plan.entries:
        from warpsmith.knowledge.catalog import Catalog

        catalog = Catalog.load(campaign.project)
        for entry in plan.entries:
            catalog.get(entry)
