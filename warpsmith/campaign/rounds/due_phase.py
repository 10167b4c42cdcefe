"""Which step of the loop is due, from the state on disk, with its texts filled in."""

from __future__ import annotations

from pydantic import Field

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.loop import LAST, LOOP, LoopRow, Phase, Who
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model


class DuePhase(Model):
    """What is due."""

    campaign: str
    """Where."""
    round: int = Field(ge=1)
    """The round that the step belongs to."""
    step: str
    """The row of the loop."""
    phase: Phase
    """Its phase."""
    who: Who
    """Who does it."""
    needs: str
    """What it rests on."""
    command: str
    """The command that finishes it; empty where an agent writes the file named under `produces`."""
    produces: str
    """What must exist afterwards."""
    notes: tuple[str, ...] = ()
    """What to mind this time."""


def due_row(state: CampaignState) -> LoopRow:
    """The row that is due."""
    opened = state.open
    if opened.lesson or state.filed_round:
        return _row("close")
    if state.stop and opened.last() is None and not opened.invalid:
        return _row("report" if state.final or not state.best else "race")
    rows = [row for row in LOOP if row.name not in LAST and (row.baseline or not state.baseline)]
    return next(row for row in rows if not _finished(state, row.name))


def due_phase(state: CampaignState) -> DuePhase:
    """What is due, with its texts filled in."""
    row = due_row(state)
    places = _places(state)
    return DuePhase(
        campaign=state.campaign.name,
        round=_round(state, row.name),
        step=row.name,
        phase=row.phase,
        who=row.who,
        needs=row.needs.format(**places),
        command=row.command.format(**places),
        produces=row.produces.format(**places),
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
        needless = state.open.verdict is not None and not state.open.verdict.correct
        return needless or state.open.profile_after is not None
    return getattr(state.open, name) is not None


def _designed(state: CampaignState) -> bool:
    solution = state.solution
    return (
        solution is not None
        and solution.path.is_file()
        and solutions.find_duplicate(solution, state.rounds) is None
    )


def _places(state: CampaignState) -> dict[str, str]:
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
        notes += ["The round brings the baseline: a correct version, simple before fast.", *_tips(state)]
    if name == "design" and state.solution and state.solution.path.is_file():
        same = solutions.find_duplicate(state.solution, state.rounds)
        if same:
            notes.append(f"The file is there, but {solutions.describe_duplicate(same)}.")
    if name in ("profile", "selection", "plan", "design"):
        notes += _struck(state)
    if name in ("selection", "plan"):
        notes += stagnation.plan_demands(state.stagnation, state.visible)
        notes += _masked(state)
    if name in ("plan", "design") and state.campaign.manifest.objective == "energy":
        notes.append("Joules a call decide, not time; a workload that gets much slower rolls back all the same.")
    if name == "verdict" and state.open.invalid:
        last = state.open.invalid[-1].decision.reason
        notes.append(f"{len(state.open.invalid)} attempts were INVALID, the last one: {last}; judge again.")
    return notes


def _tips(state: CampaignState) -> list[str]:
    manifest, project = state.campaign.manifest, state.campaign.project
    place = f"experience/{manifest.target}/{manifest.target_op}/{manifest.target_language}.md"
    pages = [layer / place for layer in project.knowledge_layers if (layer / place).is_file()]
    return [f"Read {project.relative(page)} first: what earlier campaigns learned." for page in pages]


def _struck(state: CampaignState) -> list[str]:
    return [
        f"Round {record.round}, {record.solution}, was struck, not to be built on: {record.struck.reason}"
        for record in state.records
        if record.struck
    ]


def _masked(state: CampaignState) -> list[str]:
    visible = {record.round for record in state.visible}
    hidden = [str(record.round) for record in state.records if record.round not in visible]
    return [f"Masked, not to be planned by: round {', '.join(hidden)}."] if hidden else []
