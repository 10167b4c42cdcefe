"""The phase of the loop that is due, from the state on disk, with its texts filled in."""

from __future__ import annotations

from pydantic import Field

from warpsmith import languages
from warpsmith.campaign.evidence import retimings
from warpsmith.campaign.history import drafts, forecast, records, solutions
from warpsmith.campaign.rounds import attempts, stagnation
from warpsmith.campaign.rounds.loop import LAST, LOOP, LoopRow, Phase, Who
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.evaluation import REFERENCE_MISSES, SLOWED


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
    """Role that does it."""
    agent: str = ""
    """Full name of the plugin's agent that does it, such as `warpsmith:cpp-specialist`; empty if none does."""
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
    if state.closure:
        return _row("report")
    if opened.lesson or state.filed_round:
        return _row("close")
    port = state.campaign.manifest.port
    if state.stop and opened.last() is None and not opened.invalid and not opened.attempts:
        return _row("report" if state.final or not state.best or port else "race")
    own = [row for row in LOOP if row.name not in LAST and (row.baseline or not state.baseline)]
    rows = [row for row in own if row.port or not port]
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
        agent=_agent(state, row),
        needs=row.needs.format(**texts),
        command=row.command.format(**texts),
        produces=row.produces.format(**texts),
        notes=tuple(_notes(state, row.name)),
    )


def forecast_notes(state: CampaignState, step: DuePhase) -> list[str]:
    """Return the expected gain of the round while nothing of it is planned, and advice if it does not pay.

    It reads the records of all campaigns, so only `warpsmith next` adds it.
    """
    if step.step not in ("profile", "selection", "plan") or state.open.plan:
        return []
    expected = forecast.forecast_round(state.campaign, state.records)
    if expected is None:
        return []
    advice = ""
    if state.campaign.manifest.minimum_gain is None and expected.gain < forecast.MINIMUM_GAIN:
        advice = f"; it seldom pays: by default a campaign ends under {forecast.MINIMUM_GAIN:.0%}"
    return [f"Another round: {expected.text}{advice}."]


def _agent(state: CampaignState, row: LoopRow) -> str:
    if row.who == "profiler":
        return "warpsmith:profiler"
    if row.who != "kernel-designer" or state.solution is None:
        return ""
    return f"warpsmith:{languages.get(state.solution.language).agent}"


def _round(state: CampaignState, name: str) -> int:
    if name in ("race", "report"):
        return state.rounds[-1].record.round if state.rounds else state.number
    return state.filed_round.record.round if state.filed_round else state.number


def _row(name: str) -> LoopRow:
    return next(row for row in LOOP if row.name == name)


def _finished(state: CampaignState, name: str) -> bool:
    if name == "design":
        return state.open.verdict is not None or _designed(state)
    if name == "profile":
        return state.open.profile is not None or (state.carried_profile is not None and not state.filed_round)
    if name == "profile_after":
        incorrect = state.open.verdict is not None and not state.open.verdict.correct
        return incorrect or state.open.profile_after is not None
    return getattr(state.open, name) is not None


def _designed(state: CampaignState) -> bool:
    solution = state.solution
    return (
        solution is not None
        and solution.path.is_file()
        and not attempts.is_unchanged(solution, state.open.attempts)
        and solutions.find_duplicate(solution, state.rounds) is None
        and not any(solutions.is_lost(solution, line) for line in state.lost)
    )


def _texts(state: CampaignState) -> dict[str, str]:
    campaign = state.campaign
    project, best = campaign.project, state.best_name or ""
    definition = project.relative(project.definition_path(campaign.manifest.target_op))
    return {
        "campaign": campaign.name,
        "folder": project.relative(campaign.folder),
        "open": project.relative(campaign.open),
        "record": project.relative(campaign.rounds / f"{state.number:03d}" / "record.json"),
        "best": best,
        "best_path": _best_path(state),
        "solution_path": project.relative(state.solution.path) if state.solution else "",
        "design_needs": f"the plan, and {best}" if best else f"the definition, {definition}",
        "stop": state.stop or "",
        **(_PORT_NEEDS if campaign.manifest.port else _NEEDS),
        "raced": "the rounds" if campaign.manifest.port else f"the final race of {best}",
    }


_NEEDS = {
    "bottleneck": "the profile's bottleneck",
    "opportunities": "the profile's opportunities",
    "judged": "the verdict and the profiles before and after",
}
"""Inputs of phases in words."""

_PORT_NEEDS = {
    "bottleneck": "the compiler's figures in the last verdict",
    "opportunities": "these figures, the machine code",
    "judged": "the verdict",
}
"""The same in a port campaign, which profiles nothing."""


def _notes(state: CampaignState, name: str) -> list[str]:
    notes = [
        f"The verdict on {line.solution} is lost; the version counts as judged, so this round needs a new one."
        for line in state.lost
        if line.round == state.number
    ]
    if name == "design" and state.baseline:
        notes += ["This round is the baseline: a correct version, simple rather than fast.", *_tips(state)]
        notes += _ported(state)
    if name == "design" and state.solution and state.solution.path.is_file():
        duplicate = solutions.find_duplicate(state.solution, state.rounds)
        if duplicate:
            notes.append(f"The file exists, but {solutions.describe_duplicate(duplicate)}.")
    if name == "design" and state.open.attempts:
        notes += [attempts.describe_attempts(state.open.attempt_count), attempts.last_error(state.open.attempts)]
    if name == "design" and state.solution:
        path = state.campaign.project.relative(state.solution.path)
        notes.append(f"Once the file stands: `warpsmith judge {path} --campaign {state.campaign.name}`.")
    if name == "lesson" and state.campaign.manifest.port:
        notes.append("UNTIMED says nothing of speed: claim no gain by it, and refute no entry.")
    if name in ("selection", "plan") and state.campaign.manifest.port:
        path, target = _best_path(state), state.campaign.manifest.target
        notes.append(
            f"A port campaign: nothing is profiled or timed; `warpsmith assembly {path} --target {target}` shows"
            " the machine code."
        )
    elif name == "selection" and state.open.profile is None:
        path = _best_path(state)
        notes.append(
            "The best version was profiled after its verdict, and that profile stands; `warpsmith profile"
            f" {path} --campaign {state.campaign.name}` prints it again."
        )
    if name in ("profile", "selection", "plan", "design"):
        notes += _struck(state)
    if name in ("selection", "plan"):
        notes += stagnation.plan_demands(state.stagnation, state.visible)
        notes += stagnation.vain_citations(state.visible)
        notes += [*_masked(state), *_unexplained(state)]
    if name in ("plan", "design") and state.campaign.manifest.objective == "energy":
        notes.append(
            "Energy per call decides, not time; but a workload that gets much slower rolls the version back."
        )
    if name == "verdict" and state.open.invalid:
        last = state.open.invalid[-1].decision.reason.rstrip(".")
        notes.append(
            f"{len(state.open.invalid)} attempts were INVALID, the last one because: {last}; {_cure(state, last)}."
        )
    return [*notes, *_changed_versions(state)]


def _changed_versions(state: CampaignState) -> list[str]:
    """Return a note for each judged version whose file is no longer what was judged."""
    project = state.campaign.project
    versions = project.kernels / state.campaign.manifest.target_op
    judged = [
        (records.version_file(record, versions), record.snapshot_sha256, stored.folder / record.snapshot)
        for stored in state.rounds
        for record in (stored.record,)
    ]
    if state.solution and state.open.verdict:
        snapshot = state.campaign.open / f"{state.solution.language}-{state.solution.path.name}"
        sha256 = state.open.verdict.provenance.solution_sha256
        judged.append((state.solution.path, sha256, snapshot))
    notes = []
    for path, sha256, snapshot in judged:
        if not records.has_content(path, sha256):
            change = "was edited" if path.is_file() else "is gone"
            remedy = f"put {project.relative(snapshot)} back"
            notes.append(f"{project.relative(path)} {change} since it was judged; {remedy}.")
    return notes


def _cure(state: CampaignState, reason: str) -> str:
    """Return what to do after an INVALID verdict: a machine recovers, a definition does not."""
    if reason.startswith(SLOWED):
        return _cure_slowness(state)
    if not reason.startswith(REFERENCE_MISSES):
        return "judge again"
    return (
        "mend the definition in another file and run `warpsmith amend"
        f' {state.campaign.name} --definition FILE --reason "WHY"`'
    )


def _cure_slowness(state: CampaignState) -> str:
    """Return what to do where the best version keeps coming out slow."""
    best = next(stored for stored in state.rounds if stored.record is state.best)
    again = [retiming for _, retiming in retimings.read_retimings(state.campaign, best) if not retiming.taken]
    if again and set(again[-1].answers) & {each.provenance.seed for each in state.open.invalid}:
        return (
            f"it was timed again by itself: {again[-1].reason} Judge again on an idle machine, or review the"
            f" version and take it out with `warpsmith strike {best.record.round} --campaign {state.campaign.name}"
            ' --reason "WHY"`'
        )
    return "judge again; if that repeats, the best version's own time is taken again first"


def _best_path(state: CampaignState) -> str:
    """Return the path of the best version as records give it; empty if there is none."""
    project, best = state.campaign.project, state.best
    versions = project.kernels / state.campaign.manifest.target_op
    return project.relative(records.version_file(best, versions)) if best else ""


def _tips(state: CampaignState) -> list[str]:
    manifest, project = state.campaign.manifest, state.campaign.project
    if manifest.earlier_work == "hidden":
        return []
    page = f"experience/{manifest.target}/{manifest.target_op}/{manifest.target_language}.md"
    pages = [layer / page for layer in project.knowledge_layers if (layer / page).is_file()]
    return (
        ["`warpsmith brief --lessons` prints the lessons of earlier campaigns; read them first."] if pages else []
    )


def _ported(state: CampaignState) -> list[str]:
    """Return a note on the versions that port campaigns left for the target, which may serve as drafts."""
    manifest, project = state.campaign.manifest, state.campaign.project
    if manifest.port or manifest.earlier_work == "hidden" or state.solution is None:
        return []
    paths = [
        project.relative(solution.path)
        for solution in drafts.untimed_versions(project, manifest.target_op, manifest.target)
        if solution.language == state.solution.language
    ]
    due = project.relative(state.solution.path)
    drafted = f"Versions of port campaigns, never timed: {', '.join(paths)}; copy one to {due} to judge it."
    return [drafted] if paths else []


def _struck(state: CampaignState) -> list[str]:
    return [
        f"Round {record.round}, {record.solution}, was struck; do not build on it: {record.struck.reason}"
        for record in state.records
        if record.struck
    ]


def _unexplained(state: CampaignState) -> list[str]:
    """Return a note on the best version if the metric of its plan did not move as predicted."""
    best, movement = state.best, state.best.outcome.movement if state.best else None
    if best is None or movement is None or not best.unexplained:
        return []
    moved = (movement.after or 0) - (movement.before or 0)
    return [
        f"{best.solution} is better for a reason unknown: {movement.metric} moved by {moved:+.3g}, not by"
        f" {movement.predicted:+.3g} as planned. See what did, with `warpsmith profile --diff {best.parent}"
        f" {best.solution} --campaign {state.campaign.name}`, and rest the plan on that."
    ]


def _masked(state: CampaignState) -> list[str]:
    visible = {record.round for record in state.visible}
    hidden = [str(record.round) for record in state.records if record.round not in visible]
    return [f"Masked, so plan without them: round {', '.join(hidden)}."] if hidden else []
