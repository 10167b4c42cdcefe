"""The phase of the loop that is due, from the state on disk, with its texts filled in."""

from __future__ import annotations

from pydantic import Field

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.loop import LAST, LOOP, LoopRow, Phase, Who
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model


class DuePhase(Model):
    """The phase that is due, as `warpsmith next` prints it."""

    campaign: str
    """Name of the campaign."""
    round: int = Field(ge=1)
    """Number of the round that the phase belongs to."""
    step: str
    """Name of the row of the loop."""
    phase: Phase
    """Phase of the row."""
    who: Who
    """Agent or lab that does it."""
    needs: str
    """Inputs of the phase."""
    command: str
    """Command that finishes it; empty if an agent writes the file named under `produces`."""
    produces: str
    """Files that exist afterwards."""
    notes: tuple[str, ...] = ()
    """Hints for this time."""


def find_due_row(state: CampaignState) -> LoopRow:
    """Find the row of the loop that is due."""
    opened = state.open
    if opened.lesson or state.filed_round:
        return _row("close")
    if state.stop and opened.last() is None and not opened.invalid:
        return _row("report" if state.final or not state.best else "race")
    rows = [row for row in LOOP if row.name not in LAST and (row.baseline or not state.baseline)]
    return next(row for row in rows if not _finished(state, row.name))


def find_due_phase(state: CampaignState) -> DuePhase:
    """Find the phase that is due, with its texts filled in."""
    row = find_due_row(state)
    texts = _texts(state)
    return DuePhase(
        campaign=state.campaign.name,
        round=_round(state, row.name),
        step=row.name,
        phase=row.phase,
        who=row.who,
        needs=row.needs.format(**texts),
        command=row.command.format(**texts),
        produces=row.produces.format(**texts),
        notes=tuple(_notes(state, row.name)),
    )


def _round(state: CampaignState, name: str) -> int:
    if name in ("race", "report"):
        return state.rounds[-1].record.round
    return state.filed_round.record.round if state.filed_round else state.number


def _row(name: str) -> LoopRow:
    return next(row for row in LOOP if row.name == name)


def _finished(state: CampaignState, name: str) -> bool:
    if name == "design":
        return state.open.verdict is not None or _designed(state)
    if name == "profile_after":
        incorrect = state.open.verdict is not None and not state.open.verdict.correct
        return incorrect or state.open.profile_after is not None
    return getattr(state.open, name) is not None


def _designed(state: CampaignState) -> bool:
    solution = state.solution
    return (
        solution is not None
        and solution.path.is_file()
        and solutions.find_duplicate(solution, state.rounds) is None
    )


def _texts(state: CampaignState) -> dict[str, str]:
    campaign = state.campaign
    project, op = campaign.project, campaign.manifest.target_op
    best = solutions.find_solution(project, op, state.best_name) if state.best_name else None
    definition = project.relative(project.definition_path(op))
    return {
        "campaign": campaign.name,
        "folder": project.relative(campaign.folder),
        "open": project.relative(campaign.open),
        "record": project.relative(campaign.rounds / f"{state.number:03d}" / "record.json"),
        "best": best.name if best else "",
        "best_path": project.relative(best.path) if best else "",
        "solution_path": project.relative(state.solution.path) if state.solution else "",
        "design_needs": f"the plan, and {best.name}" if best else f"the definition, {definition}",
        "stop": state.stop or "",
    }


def _notes(state: CampaignState, name: str) -> list[str]:
    notes = []
    if name == "design" and state.baseline:
        notes += ["This round is the baseline: a correct version, simple rather than fast.", *_tips(state)]
    if name == "design" and state.solution and state.solution.path.is_file():
        duplicate = solutions.find_duplicate(state.solution, state.rounds)
        if duplicate:
            notes.append(f"The file exists, but {solutions.describe_duplicate(duplicate)}.")
    if name in ("profile", "selection", "plan", "design"):
        notes += _struck(state)
    if name in ("selection", "plan"):
        notes += stagnation.plan_demands(state.stagnation, state.visible)
        notes += _masked(state)
    if name in ("plan", "design") and state.campaign.manifest.objective == "energy":
        notes.append(
            "Energy per call decides, not time; but a workload that gets much slower rolls the version back."
        )
    if name == "verdict" and state.open.invalid:
        last = state.open.invalid[-1].decision.reason
        notes.append(
            f"{len(state.open.invalid)} attempts were INVALID, the last one because: {last}; judge again."
        )
    return notes


def _tips(state: CampaignState) -> list[str]:
    manifest, project = state.campaign.manifest, state.campaign.project
    page = f"experience/{manifest.target}/{manifest.target_op}/{manifest.target_language}.md"
    pages = [layer / page for layer in project.knowledge_layers if (layer / page).is_file()]
    return [f"Read {project.relative(path)} first: it has the lessons of earlier campaigns." for path in pages]


def _struck(state: CampaignState) -> list[str]:
    return [
        f"Round {record.round}, {record.solution}, was struck; do not build on it: {record.struck.reason}"
        for record in state.records
        if record.struck
    ]


def _masked(state: CampaignState) -> list[str]:
    visible = {record.round for record in state.visible}
    hidden = [str(record.round) for record in state.records if record.round not in visible]
    return [f"Masked, so plan without them: round {', '.join(hidden)}."] if hidden else []
