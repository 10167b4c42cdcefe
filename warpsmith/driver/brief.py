"""The brief: the designer's task, put together from the open round; what it needs to know and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import languages
from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds import steps
from warpsmith.core.campaign import Plan, RoundRecord
from warpsmith.driver.contracts.models import Optimization, TaskContract
from warpsmith.errors import MissingInput
from warpsmith.knowledge.catalog import Catalog
from warpsmith.lab.machine import hardware
from warpsmith.lab.operator import definition_file
from warpsmith.languages.shared.signature import described
from warpsmith.reporting import format
from warpsmith.reporting.tips import Subject

if TYPE_CHECKING:
    from warpsmith.campaign.history.solutions import Solution
    from warpsmith.campaign.rounds.state import State
    from warpsmith.core.definition import Definition

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
"""Figures of a target that bound a kernel, in the order in which they are told."""

PEAKS = ("peak_fp32", "peak_fp16_tensor", "peak_bf16_tensor", "peak_fp8_tensor")
"""Told beside them where arithmetic is the bottleneck."""

WORKLOADS, TRIED, ANTI_PATTERNS, LONGEST = 12, 4, 5, 240
"""Workloads, rolled back rounds and anti-patterns that are named, and the characters of one foreign text."""

NOTHING_MEASURED = "None measured; a correct version first, simple before fast."


def brief(now: State) -> TaskContract:
    """The designer's task in the open round.

    Raises:
        MissingInput: the round has no plan yet, or no version is due.
        BadDefinition: the definition does not import.
        UnknownFigure, Misuse: what the manifest names is not there.
    """
    due = _due(now)
    profile, plan = now.open.profile, now.open.plan
    catalog = Catalog.load(now.campaign.project)
    return TaskContract(
        op=now.campaign.manifest.target_op,
        current=now.best_name,
        due=due.name,
        bottleneck=profile.bottleneck if profile else None,
        root_cause=format.plain(profile.root_cause, LONGEST) if profile else NOTHING_MEASURED,
        optimizations=tuple(_planned(plan, catalog)) if plan else (_baseline(now),),
        constraints=tuple(_constraints(now, due, catalog)),
    )


def _due(now: State) -> Solution:
    step = steps.next_step(now)
    planned = now.baseline or now.open.plan is not None
    if now.solution is None or not planned or step.phase == "REPORT":
        todo = f"run `{step.command}`" if step.command else f"write {step.produces}"
        raise MissingInput(
            f"{now.campaign.name} has no version to design: {step.phase} of round {step.round} is due; {todo}."
        )
    return now.solution


def _baseline(now: State) -> Optimization:
    definition = now.campaign.project.relative(now.campaign.project.definition(now.campaign.manifest.target_op))
    return Optimization(name="baseline", why=f"what `reference` in {definition} computes, for every workload")


def _planned(plan: Plan, catalog: Catalog) -> Iterator[Optimization]:
    moves = f"{plan.metric} {format.change(plan.expected_change)}"
    told = format.plain(plan.hypothesis, LONGEST).rstrip(".")
    yield Optimization(
        name="hypothesis", why=f"{told}; predicted gain {format.gain(plan.predicted_gain)}, {moves}"
    )
    if plan.risks:
        yield Optimization(name="risks", why=format.plain(plan.risks, LONGEST))
    for id in plan.entries:
        yield Optimization(name=id, why=format.plain(catalog.get(id).matter.title, LONGEST), entry=id)


def _constraints(now: State, due: Solution, catalog: Catalog) -> Iterator[str]:
    project, op = now.campaign.project, now.campaign.manifest.target_op
    definition = definition_file.load(project.definition(op)).definition
    path = project.relative(due.path)
    yield f"Write {path} and no other file; {_start(now, due)}."
    yield _signature(now, due.language, definition)
    yield f"Parameters: {'; '.join(format.plain(text, 120).rstrip('.') for text in described(definition))}."
    if definition.constraints:
        yield f"Callers promise: {format.plain('; '.join(definition.constraints), LONGEST).rstrip('.')}."
    yield _judged(now, definition)
    if limits := _limits(now):
        yield limits
    yield from _tried(now)
    if tips := _tips(now, due):
        yield tips
    if ids := _anti_patterns(now, due, definition, catalog):
        yield f"Anti-patterns here: {', '.join(ids)} (`warpsmith knowledge show ID`)."
    yield f"Check it with `warpsmith judge {path} --check`; it times nothing and keeps nothing."


def _start(now: State, due: Solution) -> str:
    project, op = now.campaign.project, now.campaign.manifest.target_op
    if now.best_name is None:
        return f"start from the definition, {project.relative(project.definition(op))}"
    best = solutions.at(project, op, now.best_name)
    port = "" if best.language == due.language else f", which is {best.language}"
    return f"start from {project.relative(best.path)}{port}"


def _signature(now: State, language: str, definition: Definition) -> str:
    """What `run` looks like, by the language's own starting file; with the header that it includes."""
    template = languages.get(language).template(definition).splitlines()
    run = next(text for text in template if " run(" in text).rstrip(" {:")
    headers = [text.partition("<")[2].rstrip(">") for text in template if text.startswith("#include <")]
    found = [path for name in headers for path in Path(languages.__file__).parent.rglob(name)]
    read = "".join(f"; include {path.name}, read it at {now.campaign.project.relative(path)}" for path in found)
    does = "writes into" if found or definition.outputs_are == "given" else "returns"
    return f"Define `{run}`, which {does} {', '.join(definition.outputs)}{read}."


def _judged(now: State, definition: Definition) -> str:
    everything = now.baseline or now.campaign.manifest.shapes == "full"
    timed = definition.select("representative", "full") if everything else definition.select("representative")
    names = [format.plain(workload.name, 60) for workload in timed]
    more = f" and {len(names) - WORKLOADS} more" if len(names) > WORKLOADS else ""
    odd = len(definition.select("odd"))
    correct = f"; {format.counted(odd, 'odd workload')} for correctness only" if odd else ""
    by = "" if now.campaign.manifest.objective == "time" else " by joules a call, and no slower,"
    return f"Judged{by} at {', '.join(names[:WORKLOADS])}{more}{correct}."


def _limits(now: State) -> str:
    """The known figures that bound a kernel; empty where the target's page knows none."""
    page = hardware.read(now.campaign.project, now.campaign.manifest.target)
    wanted = LIMITS + (PEAKS if now.open.profile and now.open.profile.bottleneck == "compute" else ())
    figures = {name: page.target.figures[name] for name in wanted if name in page.target.figures}
    known = [f"{name} {f.value:g} {f.unit}" for name, f in figures.items() if not isinstance(f.value, str)]
    sources = f"`warpsmith hardware {page.target.id}` has the sources"
    return f"{page.target.id}: {', '.join(known)} ({sources})." if known else ""


def _tried(now: State) -> Iterator[str]:
    lost = [record for record in now.visible if not record.verdict.accepted]
    for record in lost[-TRIED:]:
        became = "struck" if record.struck else "rolled back"
        yield f"Tried and {became} in round {record.round}: {_why(record)}"


def _why(record: RoundRecord) -> str:
    tried = format.plain(record.plan.hypothesis, LONGEST // 2).rstrip(".")
    reason = record.struck.reason if record.struck else record.evaluation.decision.reason
    return f"{tried}. {format.plain(reason, LONGEST // 2).rstrip('.')}."


def _tips(now: State, due: Solution) -> str:
    manifest, project = now.campaign.manifest, now.campaign.project
    place = Subject(manifest.target, manifest.target_op, due.language).path
    pages = [layer / place for layer in project.knowledge_layers if (layer / place).is_file()]
    return f"Read what earlier campaigns learned: {', '.join(map(project.relative, pages))}." if pages else ""


def _anti_patterns(now: State, due: Solution, definition: Definition, catalog: Catalog) -> list[str]:
    words = [definition.op_type, *now.campaign.manifest.target_op.split("_")]
    target = now.campaign.manifest.target
    hits = catalog.search(words, kind="anti-pattern", language=due.language, target=target)
    return [hit.id for hit in hits if hit.status != "refuted"][:ANTI_PATTERNS]
