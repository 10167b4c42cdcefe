"""What the claude designer asks: a few sentences around what the lab prints; methods are the plugin's skills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep
from warpsmith.campaign.status import status
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.profile import Profile
from warpsmith.driver.brief import brief
from warpsmith.driver.contracts import kept as contract_kept
from warpsmith.driver.contracts import registry as contracts
from warpsmith.reporting import facts, format

REVIEW_LONGEST = 4000
"""Characters of a review that LEARN is shown."""


def select(now: State, step: NextStep, languages: Sequence[str], refused: str) -> str:
    """SELECT."""
    question = f"Choose the language of the next version. The lab can time on this target: {', '.join(languages)}."
    profile = _profile(now, now.open.profile)
    return _page(_opening(now, step, question), _notes(step), _standing(now), profile, refused)


def plan(now: State, step: NextStep, refused: str) -> str:
    """STRATEGIZE."""
    question = (
        "Propose the plan of the next version: one hypothesis, one change. Search the knowledge before you choose;"
        " name entries by ids that `warpsmith knowledge` printed."
    )
    language = f"Selected language: {now.open.selection.language}." if now.open.selection else ""
    profile = _profile(now, now.open.profile)
    return _page(_opening(now, step, question), _notes(step), language, _standing(now), profile, refused)


def design(now: State, draft: str, refused: str) -> str:
    """DESIGN: the brief, and where a draft of it lies."""
    note = f"An attempt that was cut off left a draft, {draft}; judge for yourself what of it holds."
    return _page(contracts.render(brief(now)), note if draft else "", refused)


def review(now: State, refused: str) -> str:
    """The reviewer's task, before LEARN."""
    campaign, op = now.campaign, now.campaign.manifest.target_op
    project, verdict, outcome = campaign.project, now.open.verdict, now.open.outcome
    if verdict is None or outcome is None or now.solution is None:
        raise AssertionError("a review comes after an outcome")
    best = solutions.at(project, op, now.best_name).path if now.best_name else None
    return _page(
        f"Review {op} {now.solution.name}, which the lab accepted in campaign {campaign.name}.",
        _lines(
            (
                f"Version: {project.relative(now.solution.path)}",
                f"The one before: {project.relative(best) if best else 'none, it is the first'}",
                f"Definition: {project.relative(project.definition(op))}",
                f"Verdict: {project.relative(campaign.open / 'verdict.json')}",
                f"Gain: {format.gain(outcome.gain)}; {verdict.decision.verdict}: {verdict.decision.reason}",
            )
        ),
        refused,
    )


def learn(now: State, step: NextStep, finding: str, refused: str) -> str:
    """LEARN."""
    question = (
        "Say what the round's evidence teaches beyond this kernel: `add` with the whole page as `text`, `refine`"
        " or `refute` with the entry's id and the note, or `nothing` with the reason."
    )
    verdict, outcome, plan = now.open.verdict, now.open.outcome, now.open.plan
    told = [
        f"Version: {now.solution.name}" if now.solution else "",
        f"Plan: {plan.model_dump_json(exclude_defaults=True)}" if plan else "Plan: none, this is the baseline.",
        f"Verdict: {verdict.decision.verdict}: {verdict.decision.reason}" if verdict else "",
        f"Failed: {facts.failure(verdict)}" if verdict and facts.failure(verdict) else "",
        f"Outcome: {outcome.model_dump_json(exclude={'stagnation'})}" if outcome else "",
    ]
    return _page(
        _opening(now, step, question),
        _lines(told),
        _standing(now),
        _profile(now, now.open.profile_after),
        f"The reviewer's finding:\n\n{finding[:REVIEW_LONGEST]}" if finding else "",
        refused,
    )


def sent_back(answer: str, refusal: str) -> str:
    """What is added where the lab refused an answer."""
    before = f"Your last answer was:\n\n{answer}\n\n" if answer else ""
    return f"{before}It was refused: {refusal}\n\nMend that and answer again."


def _opening(now: State, step: NextStep, question: str) -> str:
    manifest = now.campaign.manifest
    return (
        f"{step.phase} of round {step.round} in campaign {manifest.campaign}: {manifest.target_op} on"
        f" {manifest.target}. `warpsmith optimize` drives this campaign without a person and does every other step"
        " itself: answer this one step, by the answer's form, and change nothing. Read files, and what `warpsmith"
        f" knowledge`, `status` and `hardware` print.\n\n{question}"
    )


def _notes(step: NextStep) -> str:
    return _lines(f"Note: {note}" for note in step.notes)


def _standing(now: State) -> str:
    calibration = status(now).calibration
    found = "" if calibration.median_error is None else f"Predictions: {calibration.model_dump_json()}"
    return _lines(["Rounds so far:" if now.visible else "", *map(_round, now.visible), found])


def _round(record: RoundRecord) -> str:
    gain = format.gain(record.outcome.gain)
    told = f"{record.plan.category}, {facts.verdict(record)}, gain {gain}: {record.plan.hypothesis}"
    return f"- Round {record.round}, {record.solution}, {told} Found: {facts.key_finding(record)}"


def _profile(now: State, profile: Profile | None) -> str:
    manifest = now.campaign.manifest
    return contract_kept.printed(profile, manifest.target_op, manifest.target, now) if profile else ""


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))


def _page(*parts: str) -> str:
    return "\n\n".join(filter(None, (part.strip() for part in parts)))
