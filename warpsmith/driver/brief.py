"""The brief: the designer's task, built from the open round, with what the designer needs and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import languages
from warpsmith.campaign import experiment, firewall
from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds import attempts, due_phase
from warpsmith.core.campaign import Plan, RoundRecord
from warpsmith.driver import guidance
from warpsmith.driver.task import DesignTask, PlannedChange
from warpsmith.errors import MissingInput
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.lab.machine.floors import floor_seconds_by_workload
from warpsmith.lab.operator import definition_file
from warpsmith.languages.shared.signature import describe_arguments
from warpsmith.reporting import format
from warpsmith.reporting.tips import TipSubject

if TYPE_CHECKING:
    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.campaign.rounds.state import CampaignState
    from warpsmith.core.definition import Definition, Workload

LIMITS = (
    "memory_bandwidth",
    "sm_count",
    "cores",
    "warp_size",
    "l2_size",
    "llc_size",
    "shared_memory_per_block_max",
    "registers_per_sm",
    "max_registers_per_thread",
    "max_threads_per_sm",
)
"""Figures of a target that limit a kernel, in the order of the brief."""

PEAKS = ("peak_fp32", "peak_fp16_tensor", "peak_bf16_tensor", "peak_fp8_tensor")
"""Figures that are added if arithmetic is the bottleneck."""

WORKLOADS, TRIED, ANTI_PATTERNS, LONGEST = 12, 4, 5, 240
"""Limits: workloads, rolled back rounds and anti-patterns in a brief, and characters of a text from a record."""

NOTHING_MEASURED = "Nothing was measured yet; write a correct version first, simple before fast."


def write_brief(state: CampaignState) -> DesignTask:
    """Write the designer's task for the open round.

    Raises:
        MissingInput: the round has no plan yet, or no version is due.
        BadDefinition: the definition does not import.
        UnknownFigure, Misuse: the manifest names something that does not exist.
    """
    due = _due_version(state)
    profile, plan = state.open.profile, state.open.plan
    catalog = experiment.load_catalog(state.campaign.project, state.campaign)
    return DesignTask(
        op=state.campaign.manifest.target_op,
        current=state.best_name,
        due=due.name,
        bottleneck=profile.bottleneck if profile else None,
        root_cause=format.plain(profile.root_cause, LONGEST) if profile else NOTHING_MEASURED,
        optimizations=tuple(_planned_changes(state, plan, catalog)) if plan else (_baseline(state),),
        constraints=tuple(_constraints(state, due, catalog)),
        fitting=tuple(_fitting_entries(state, due, catalog)),
        prior_art=tuple(guidance.approach_lines(state.campaign.project, _definition(state))),
    )


PORT_RULES = (
    "A port campaign: the interpreter grades the version, the target's compiler gets what `run` launches there;"
    " nothing is timed. Give kernels tensors and plain numbers; they must not read the environment or the target."
    " Write `&` and `|` for blocks, `other=` where masked values count, no types as annotations, and no helper in"
    " another file; `run` must not read tensors on the host."
)
"""Constraint of a version that no device runs."""


def header_files(state: CampaignState) -> list[Path]:
    """List the headers that the version to design includes and that the lab brings; raises as `write_brief`."""
    project, op = state.campaign.project, state.campaign.manifest.target_op
    definition = definition_file.load_definition(project.definition_path(op)).definition
    return _included_headers(languages.get(_due_version(state).language).template(definition).splitlines())


def lesson_pages(state: CampaignState) -> list[Path]:
    """List the pages with lessons of earlier campaigns on the operator, target and language; raises likewise."""
    manifest, project = state.campaign.manifest, state.campaign.project
    if manifest.earlier_work == "hidden":
        return []
    path = TipSubject(manifest.target, manifest.target_op, _due_version(state).language).path
    return [layer / path for layer in project.knowledge_layers if (layer / path).is_file()]


def _due_version(state: CampaignState) -> Solution:
    step = due_phase.find_due_phase(state)
    planned = state.baseline or state.open.plan is not None
    if state.solution is None or not planned or step.phase == "REPORT":
        todo = f"run `{step.command}`" if step.command else f"write {step.produces}"
        raise MissingInput(
            f"{state.campaign.name} has no version to design: {step.phase} of round {step.round} is due; {todo}."
        )
    return state.solution


def _baseline(state: CampaignState) -> PlannedChange:
    definition = state.campaign.project.relative(
        state.campaign.project.definition_path(state.campaign.manifest.target_op)
    )
    return PlannedChange(name="baseline", why=f"what `reference` in {definition} computes, for every workload")


def _definition(state: CampaignState) -> Definition:
    path = state.campaign.project.definition_path(state.campaign.manifest.target_op)
    return definition_file.load_definition(path).definition


def _shown_rate(state: CampaignState) -> guidance.ShownRate:
    """Return what a brief shows of a hit rate: the losses elsewhere, and nothing of earlier work that is hidden.

    The campaign's own rounds are no losses here: the brief names them elsewhere, unless they are masked.
    """
    own = f"{state.campaign.project.relative(state.campaign.folder)}/"
    wall = firewall.campaign_firewall(state.campaign)
    return guidance.ShownRate(own, wall.visible_rate if wall else None)


def _fitting_entries(state: CampaignState, due: Solution, catalog: Catalog) -> Iterator[PlannedChange]:
    profile, plan = state.open.profile, state.open.plan
    symptom = profile.root_cause if profile else ""
    planned = plan.entries if plan else ()
    target = state.campaign.manifest.target
    return guidance.fitting_entries(
        catalog, _definition(state), due.language, target, symptom, planned, _shown_rate(state)
    )


def _planned_changes(state: CampaignState, plan: Plan, catalog: Catalog) -> Iterator[PlannedChange]:
    hypothesis = format.plain(plan.hypothesis, LONGEST).rstrip(".")
    prediction = f"{format.gain(plan.predicted_gain)}, {plan.metric} {format.change(plan.expected_change)}"
    yield PlannedChange(name="hypothesis", why=f"{hypothesis}; predicted gain {prediction}")
    if plan.risks:
        yield PlannedChange(name="risks", why=format.plain(plan.risks, LONGEST))
    for entry in plan.entries:
        yield guidance.entry_line(catalog, entry, _shown_rate(state))


def _constraints(state: CampaignState, due: Solution, catalog: Catalog) -> Iterator[str]:
    project, op = state.campaign.project, state.campaign.manifest.target_op
    definition = definition_file.load_definition(project.definition_path(op)).definition
    path = project.relative(due.path)
    yield f"Write {path} and no other file; {_start(state, due)}."
    yield _signature(state, due.language, definition)
    parameters = (format.plain(text, 120).rstrip(".") for text in describe_arguments(definition))
    yield f"Parameters: {'; '.join(parameters)}."
    if definition.constraints:
        yield f"Callers guarantee: {format.plain('; '.join(definition.constraints), LONGEST).rstrip('.')}."
    yield _judged_workloads(state, definition)
    if limits := _limits(state):
        yield limits
    if state.campaign.manifest.port:
        yield PORT_RULES
    if state.open.attempts:
        yield attempts.describe_attempts(state.open.attempt_count)
        yield format.plain(f"Its error was {attempts.last_error(state.open.attempts)}", 2 * LONGEST)
    yield from _failed_rounds(state)
    if earlier := firewall.visibility_line(state.campaign):
        yield earlier
    if tips := _tips(state):
        yield tips
    if ids := _anti_patterns(state, due, definition, catalog):
        yield f"Anti-patterns to avoid: {', '.join(ids)} (`warpsmith knowledge show ID`)."
    yield f"Check the version with `warpsmith judge {path} --check`, which times nothing and keeps nothing."


def _start(state: CampaignState, due: Solution) -> str:
    project, op = state.campaign.project, state.campaign.manifest.target_op
    if state.best_name is None:
        return f"start from the definition, {project.relative(project.definition_path(op))}"
    best = solutions.find_solution(project, op, state.best_name)
    port = "" if best.language == due.language else f", which is {best.language}"
    return f"start from {project.relative(best.path)}{port}"


def _signature(state: CampaignState, language: str, definition: Definition) -> str:
    """Signature of `run` from the language's starting file, with the header that the file includes."""
    template = languages.get(language).template(definition).splitlines()
    run = next(text for text in template if " run(" in text).rstrip(" {:")
    paths = _included_headers(template)
    includes = "".join(f"; include {path.name}, which `warpsmith brief --header` prints" for path in paths)
    verb = "writes into" if paths or definition.outputs_are == "given" else "returns"
    return f"Define `{run}`, which {verb} {', '.join(definition.outputs)}{includes}."


def _included_headers(template: list[str]) -> list[Path]:
    """List the lab's own headers among those that a language's starting file includes."""
    names = [text.partition("<")[2].rstrip(">") for text in template if text.startswith("#include <")]
    return [path for name in names for path in Path(languages.__file__).parent.rglob(name)]


def _judged_workloads(state: CampaignState, definition: Definition) -> str:
    everything = state.baseline or state.campaign.manifest.shapes == "full"
    timed = definition.select("representative", "full") if everything else definition.select("representative")
    page = hardware.read_target_page(state.campaign.project, state.campaign.manifest.target)
    floors = floor_seconds_by_workload(state.campaign.project, page, definition, timed[:WORKLOADS])
    names = [
        f"{format.plain(workload.name, 60)}{_workload_text(workload, floors.get(workload.name))}"
        for workload in timed
    ]
    more = f" and {len(names) - WORKLOADS} more" if len(names) > WORKLOADS else ""
    odd = len(definition.select("odd"))
    correct = f"; {format.count_noun(odd, 'odd workload')} for correctness only" if odd else ""
    objective = "" if state.campaign.manifest.objective == "time" else " by joules a call, and no slower,"
    return f"Judged{objective} on {', '.join(names[:WORKLOADS])}{more}{correct}."


def _workload_text(workload: Workload, floor: float | None) -> str:
    """Return the floor of a workload and the calls that were counted of it, in parentheses."""
    parts = [] if floor is None else [f"floor {format.seconds(floor)}"]
    parts += [] if workload.weight is None else [f"{format.count_noun(workload.weight, 'counted call')}"]
    return f" ({', '.join(parts)})" if parts else ""


def _limits(state: CampaignState) -> str:
    """Figures that limit a kernel; empty if the target's page has none."""
    page = hardware.read_target_page(state.campaign.project, state.campaign.manifest.target)
    selected = LIMITS + (PEAKS if state.open.profile and state.open.profile.bottleneck == "compute" else ())
    figures = {name: page.target.figures[name] for name in selected if name in page.target.figures}
    values = [f"{name} {f.value:g} {f.unit}" for name, f in figures.items() if not isinstance(f.value, str)]
    sources = f"`warpsmith hardware {page.target.id}` has the sources"
    return f"{page.target.id}: {', '.join(values)} ({sources})." if values else ""


def _failed_rounds(state: CampaignState) -> Iterator[str]:
    failed = [record for record in state.visible if not record.verdict.stands]
    for record in failed[-TRIED:]:
        outcome = "struck" if record.struck else "rolled back"
        yield f"Tried and {outcome} in round {record.round}: {_failure(record)}"
    lost = [(record, contender) for record in state.visible for contender in record.lost]
    for record, contender in lost[-TRIED:]:
        hypothesis = format.plain(contender.plan.hypothesis, LONGEST // 2).rstrip(".")
        reason = format.plain(contender.reason, LONGEST // 2).rstrip(".")
        yield f"Lost to {record.solution} in round {record.round}, not judged: {hypothesis}. {reason}."


def _failure(record: RoundRecord) -> str:
    hypothesis = format.plain(record.plan.hypothesis, LONGEST // 2).rstrip(".")
    reason = record.struck.reason if record.struck else record.evaluation.decision.reason
    return f"{hypothesis}. {format.plain(reason, LONGEST // 2).rstrip('.')}."


def _tips(state: CampaignState) -> str:
    if not lesson_pages(state):
        return ""
    return "Read the lessons of earlier campaigns, which `warpsmith brief --lessons` prints."


def _anti_patterns(state: CampaignState, due: Solution, definition: Definition, catalog: Catalog) -> list[str]:
    words = [definition.op_type, *state.campaign.manifest.target_op.split("_")]
    target = state.campaign.manifest.target
    hits = catalog.search(words, kind="anti-pattern", language=due.language, target=target)
    return [hit.id for hit in hits if hit.status != "refuted"][:ANTI_PATTERNS]
