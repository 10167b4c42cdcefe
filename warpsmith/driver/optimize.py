"""The headless loop: do what `next` says until a stop condition holds or the designer is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.campaign import lessons, lock, resume, rounds, state, work
from warpsmith.campaign.state import State
from warpsmith.campaign.steps import NextStep, next_step
from warpsmith.campaign.store import Campaign
from warpsmith.driver.designer import Designer
from warpsmith.errors import MachineFailed, Misuse

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
        WarpsmithError: a step refused; everything up to it is on disk.
    """
    progress = progress or Progress()
    with lock.hold(campaign, f"optimize with the {designer.name} designer"):
        resume.resume(campaign)
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


def _do(campaign: Campaign, designer: Designer, now: State, step: NextStep, tell: Callable[[str], None]) -> str:
    """One step; returns its result in a few words."""
    match step.step:
        case "profile" | "profile_after":
            found = work.profile(campaign, tell)
            return f"{found.bottleneck}: {found.root_cause}"
        case "selection":
            selection = designer.select(now, step)
            rounds.record_selection(campaign, selection)
            return f"{selection.language}: {selection.because}"
        case "plan":
            plan = designer.plan(now, step)
            rounds.record_plan(campaign, plan)
            return f"{plan.hypothesis} Predicted {plan.predicted_gain:+.0%}."
        case "design":
            return _design(campaign, designer, now, step)
        case "verdict":
            decision = work.verify(campaign, tell).decision
            return f"{decision.verdict}: {decision.reason}"
        case "outcome":
            outcome = rounds.record_outcome(campaign)
            return f"{outcome.verdict}; best {outcome.best or 'none'}" + (
                f"; {outcome.stop}" if outcome.stop else ""
            )
        case "lesson":
            proposal = designer.learn(now, step)
            record = rounds.to_learn(campaign)
            kept = rounds.close(campaign, lessons.prepare(campaign, record=record, reason="", **dict(proposal)))
            lesson = kept.record.lesson
            return f"{' '.join(filter(None, (lesson.action, lesson.entry)))}: {lesson.reason}"
        case "close":
            rounds.file_round(campaign)
            return "filed"
        case other:
            raise Misuse(f"The loop has no step `{other}`.")


def _design(campaign: Campaign, designer: Designer, now: State, step: NextStep) -> str:
    if now.solution is None:
        raise Misuse(f"{campaign.name}: no language is selected.")
    designer.design(now, step, now.solution.path)
    if next_step(state.read(campaign)).step == "design":
        raise Misuse(f"The {designer.name} designer left no new version at {step.produces}.")
    return campaign.project.relative(now.solution.path)
