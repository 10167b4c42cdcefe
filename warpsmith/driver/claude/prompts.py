"""Prompts of the claude designer: a few sentences around the lab's output. The methods are in the skills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.campaign.status import campaign_status
from warpsmith.core.campaign import Contender, RoundRecord
from warpsmith.core.profile import Profile
from warpsmith.driver.answers.profile import describe_profile
from warpsmith.driver.brief import write_brief
from warpsmith.driver.task import render_task
from warpsmith.reporting import facts, format

REVIEW_LONGEST = 4000
"""Characters of a review that the LEARN prompt includes."""


def selection_prompt(state: CampaignState, step: DuePhase, languages: Sequence[str], refused: str) -> str:
    """Return the prompt of SELECT."""
    question = f"Choose the language of the next version. The lab can time on this target: {', '.join(languages)}."
    profile = _profile_text(state, state.current_profile)
    return _page(_opening(state, step, question), _notes(step), _history(state), profile, refused)


def plan_prompt(state: CampaignState, step: DuePhase, refused: str) -> str:
    """Return the prompt of STRATEGIZE."""
    question = (
        "Propose the plan of the next version: one hypothesis, one change. Search the knowledge before you choose;"
        " name entries by ids that `warpsmith knowledge` printed."
    )
    language = f"Selected language: {state.open.selection.language}." if state.open.selection else ""
    profile = _profile_text(state, state.current_profile)
    return _page(_opening(state, step, question), _notes(step), language, _history(state), profile, refused)


def design_prompt(state: CampaignState, draft: str, refused: str) -> str:
    """Return the prompt of DESIGN: the brief, and the path of a draft if there is one."""
    note = f"An interrupted attempt left a draft, {draft}; decide for yourself which parts of it are right."
    return _page(render_task(write_brief(state)), note if draft else "", refused)


def review_prompt(state: CampaignState, refused: str) -> str:
    """Return the prompt of the review, which comes before LEARN."""
    campaign, op = state.campaign, state.campaign.manifest.target_op
    project, verdict, outcome = campaign.project, state.open.verdict, state.open.outcome
    if verdict is None or outcome is None or state.solution is None:
        raise AssertionError("a review comes after an outcome")
    best = solutions.find_solution(project, op, state.best_name).path if state.best_name else None
    fate = "accepted" if verdict.decision.verdict.accepted else "compiled and interpreted, and never timed,"
    return _page(
        f"Review {op} {state.solution.name}, which the lab {fate} in campaign {campaign.name}.",
        _lines(
            (
                f"Version: {project.relative(state.solution.path)}",
                f"Version before: {project.relative(best) if best else 'none, this is the first'}",
                f"Definition: {project.relative(project.definition_path(op))}",
                f"Verdict: {project.relative(campaign.open / 'verdict.json')}",
                f"Gain: {format.gain(outcome.gain)}; {verdict.decision.verdict}: {verdict.decision.reason}",
            )
        ),
        refused,
    )


def lesson_prompt(state: CampaignState, step: DuePhase, finding: str, refused: str) -> str:
    """Return the prompt of LEARN."""
    question = (
        "State what the round's evidence teaches beyond this kernel: `add` with the whole page as `text`, `refine`"
        " or `refute` with the entry's id and the note, or `nothing` with the reason."
    )
    verdict, outcome, plan = state.open.verdict, state.open.outcome, state.open.plan
    contenders = state.open.contenders.contenders if state.open.contenders else ()
    lost = [contender for contender in contenders if contender.end != "chosen"]
    facts_of_round = [
        f"Version: {state.solution.name}" if state.solution else "",
        f"Plan: {plan.model_dump_json(exclude_defaults=True)}" if plan else "Plan: none, this is the baseline.",
        f"Verdict: {verdict.decision.verdict}: {verdict.decision.reason}" if verdict else "",
        *map(_contender_line, lost),
        f"Failed: {facts.first_failure(verdict)}" if verdict and facts.first_failure(verdict) else "",
        f"Outcome: {outcome.model_dump_json(exclude={'stagnation'})}" if outcome else "",
    ]
    return _page(
        _opening(state, step, question),
        _lines(facts_of_round),
        _history(state),
        _profile_text(state, state.open.profile_after),
        f"The reviewer's finding:\n\n{finding[:REVIEW_LONGEST]}" if finding else "",
        refused,
    )


def refusal_prompt(answer: str, refusal: str) -> str:
    """Return the addition to a prompt whose last answer the lab refused."""
    last = f"Your last answer was:\n\n{answer}\n\n" if answer else ""
    return f"{last}It was refused: {refusal}\n\nCorrect it and answer again."


def _opening(state: CampaignState, step: DuePhase, question: str) -> str:
    manifest = state.campaign.manifest
    return (
        f"{step.phase} of round {step.round} in campaign {manifest.campaign}: {manifest.target_op} on"
        f" {manifest.target}. `warpsmith optimize` runs this campaign without a person and does every other step"
        " itself: answer this one step in the given schema, and change nothing. You may read files and run"
        f" `warpsmith knowledge`, `status` and `hardware`.\n\n{question}"
    )


def _notes(step: DuePhase) -> str:
    return _lines(f"Note: {note}" for note in step.notes)


def _history(state: CampaignState) -> str:
    calibration = campaign_status(state).calibration
    predictions = "" if calibration.median_error is None else f"Predictions: {calibration.model_dump_json()}"
    return _lines(["Rounds so far:" if state.visible else "", *map(_round_line, state.visible), predictions])


def _round_line(record: RoundRecord) -> str:
    gain = format.gain(record.outcome.gain)
    summary = f"{record.plan.category}, {facts.verdict_text(record)}, gain {gain}: {record.plan.hypothesis}"
    line = f"- Round {record.round}, {record.solution}, {summary} Finding: {facts.key_finding(record)}"
    return _lines((line, *map(_contender_line, record.lost)))


def _contender_line(contender: Contender) -> str:
    result = f"{contender.plan.category}, {contender.end}: {contender.plan.hypothesis}"
    return f"  - Contender {contender.number}, not judged, {result} {contender.reason}"


def _profile_text(state: CampaignState, profile: Profile | None) -> str:
    manifest = state.campaign.manifest
    return describe_profile(profile, manifest.target_op, manifest.target, state) if profile else ""


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))


def _page(*parts: str) -> str:
    return "\n\n".join(filter(None, (part.strip() for part in parts)))
