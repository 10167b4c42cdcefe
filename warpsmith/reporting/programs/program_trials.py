"""Page of a program's trials: each optimization, and the total of all. Rendered from records alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import files
from warpsmith.core.evaluation import Comparison
from warpsmith.core.trial import (
    Prerequisite,
    ProgramRules,
    RankedRecommendation,
    StepTiming,
    TrialFile,
    TrialRecord,
    TrialsTotal,
    TrialVerdict,
)
from warpsmith.knowledge import index
from warpsmith.program.analysis import throughput
from warpsmith.program.analysis.throughput import StepLimit, StepWork
from warpsmith.program.trials import goal, next_action, trials_total
from warpsmith.program.trials.goal import ProgramGoal
from warpsmith.program.trials.trial_store import Trials
from warpsmith.reporting import format
from warpsmith.reporting.format import Md
from warpsmith.reporting.programs import fusion_ledger
from warpsmith.reporting.programs.fusion_ledger import FusionLedger
from warpsmith.reporting.templating import fill_template

PAGE_NAME = "README.md"
"""Name of the page in the folder of a program."""


@dataclass(frozen=True)
class PageContext:
    """Context of a program's trials: what times are held against, and who edits."""

    work: StepWork | None = None
    """Data that one step handles; None if it is unknown."""
    limit: StepLimit | None = None
    """The limit of the last analysis; None if there is none."""
    goal: ProgramGoal | None = None
    """The goal; None if none is set."""
    rules: Mapping[str, ProgramRules] = field(default_factory=dict)
    """Rules of entries, by id; a trial of another entry has those of its plan."""
    ledger: FusionLedger | None = None
    """The regions of the compiled step; None if they were never listed."""


def write_program_page(trials: Trials) -> Path:
    """Write the page of a program's trials, and the index of knowledge if it changed; return the path of the page.

    Raises:
        CorruptRecord: a record does not read; nothing is written.
    """
    state = next_action.read_program_state(trials.project, trials.name)
    remaining = next_action.rank_recommendations(state, state.analysis) if state.analysis else ()
    path = trials.folder.parent / PAGE_NAME
    files.write_file(
        path,
        program_page(
            trials.name,
            trials.records(),
            trials.total(),
            trials_total.present_files(trials),
            remaining,
            PageContext(
                state.analysis.work if state.analysis else None,
                state.analysis.limit if state.analysis else None,
                goal.read_goal(trials),
                state.rules,
                fusion_ledger.read_ledger(trials),
            ),
        ),
    )
    index.update_pages(trials.project)
    return path


def program_page(
    name: str,
    records: Mapping[int, TrialRecord],
    total: TrialsTotal | None,
    present: Sequence[TrialFile],
    remaining: Sequence[RankedRecommendation] = (),
    context: PageContext = PageContext(),
) -> str:
    """Render the page of one program.

    Args:
        name: the program's name.
        records: its closed trials by number.
        total: the last measured total; None if it was not measured.
        present: every file that a kept trial edited, with its present content.
        remaining: the recommendations of the last analysis, with their states.
        context: what times are held against, and who edits.
    """
    return fill_template(
        "program",
        name=name,
        rows=[_table_row(number, record) for number, record in sorted(records.items())],
        goal=_format_goal(context, total if total and tuple(total.files) == tuple(present) else None),
        total=_format_total(total, present, any(_is_kept(record) for record in records.values())),
        total_rows=_metric_rows(total.original, total.present, total.comparison, context) if total else [],
        limit=_format_limit(context.limit),
        regions=context.ledger.rows if context.ledger else (),
        regions_notes=fusion_ledger.describe_regions(context.ledger) if context.ledger else (),
        trials=[_trial_section(number, record, context) for number, record in sorted(records.items())],
        recommendations=[
            recommendation for recommendation in remaining if recommendation.standing not in ("kept", "restored")
        ],
    )


def _table_row(number: int, record: TrialRecord) -> Md:
    """Render the table row of one trial."""
    measured, plan = record.measured, record.plan
    cells = [
        format.link(f"{number:03d}", f"trials/{number:03d}/record.json", "."),
        format.code(plan.entry),
        Md("Applied" if _is_kept(record) else "Rolled back"),
        Md(format.seconds(record.original.seconds if record.original else plan.baseline.seconds)),
        Md(format.seconds(record.edited.seconds if record.edited else None)),
        format.speedup(measured),
        Md(format.factor(plan.predicted)),
        Md(_format_peaks(record.original, record.edited)),
        format.inline(record.decision.reason),
    ]
    return Md(" | ".join(cells))


def _trial_section(number: int, record: TrialRecord, context: PageContext) -> dict[str, object]:
    """Return the section of one trial below the table."""
    result = _RESULTS[record.decision.verdict]
    specialist = context.rules.get(record.plan.entry, record.plan.rules).specialist
    return {
        "title": Md(f"{number:03d}: {format.inline(record.plan.entry)}"),
        "checks": [_format_check(check) for check in record.plan.prerequisites.checks],
        "specialist": Md(f"the task {format.code(specialist)} of {format.code('warpsmith route')}"),
        "rows": _metric_rows(record.original, record.edited, record.measured, context),
        "result": Md(f"{result}: {format.inline(record.decision.reason)}"),
        "lines": [Md(line) for line in _trial_lines(record)],
    }


def _trial_lines(record: TrialRecord) -> Iterator[str]:
    plan, numerics = record.plan, record.numerics
    files = format.comma_list(format.code(file.path) for file in plan.files)
    yield f"{files} on {format.inline(plan.device)}, {record.closed} UTC."
    if record.edited and record.original:
        yield (
            f"First step {format.seconds(record.original.first_seconds)} before the edit,"
            f" {format.seconds(record.edited.first_seconds)} after it; neither is in the median."
        )
    if numerics:
        worst = max(numerics.checks, key=lambda check: check.worst)
        share = "beyond measure" if worst.worst > 1e6 else f"{worst.worst:.2g} of its bound"
        steps = format.count_noun(numerics.steps, "step")
        yield (
            f"Numerics over {steps}, bounds of {format.code(numerics.precision)}:"
            f" the worst is {format.code(worst.name)} at {share}."
        )
    if not record.together:
        yield "The two did not fit in memory together, so their processes took turns."
    for note in record.notes:
        yield format.inline(note)


_RESULTS = {
    TrialVerdict.KEPT: "SUCCESS",
    TrialVerdict.RESTORED: "ROLLED BACK",
    TrialVerdict.INCONCLUSIVE: "ROLLED BACK, nothing shown",
}


def _format_check(check: Prerequisite) -> Md:
    """Render a prerequisite as an item of a checklist, checked if it holds."""
    mark, state = ("x", "") if check.state == "ok" else (" ", f", {check.state}")
    return Md(f"[{mark}] {format.code(check.name)}{state}: {format.inline(check.evidence)}")


def _metric_rows(
    before: StepTiming | None, after: StepTiming | None, paired: Comparison | None, context: PageContext
) -> list[Md]:
    """Render throughput, step time and share of the limit, before and after; no rows without both times.

    The change is that of the pairs, as the speedup is, and not the quotient of the two medians.
    """
    if before is None or after is None or paired is None:
        return []
    gain = f"{paired.speedup - 1:+.1%}"
    rates = [Md(throughput.format_rates(timing.seconds, context.work)) for timing in (before, after)]
    rows = [
        ("Throughput", *rates, gain),
        (
            "Step time",
            format.seconds(before.seconds),
            format.seconds(after.seconds),
            f"{1 / paired.speedup - 1:+.1%}",
        ),
    ]
    limit = context.limit.seconds if context.limit else None
    if limit:
        shares = (limit / before.seconds, limit / after.seconds)
        points = f"{100 * (shares[1] - shares[0]):+.1f} points"
        rows.append(("Share of the limit", *(f"{share:.1%}" for share in shares), points))
    else:
        rows.append(("Share of the limit", "unknown", "unknown", format.ABSENT))
    return [Md(" | ".join(row)) for row in rows]


def _format_limit(limit: StepLimit | None) -> Md:
    """Render the operations of a step, by the last analysis, and the peak that the limit comes from."""
    if limit is None:
        return Md("The limit of a step is unknown: no step was watched.")
    return Md(
        f"The limit: {limit.flops / 1e9:.3g} GFLOP in products per step, by the last analysis;"
        f" {format.inline(limit.source)}."
    )


def _format_goal(context: PageContext, total: TrialsTotal | None) -> Md:
    """Render the goal, and whether the measured total reaches it."""
    if context.goal is None:
        return Md("none set; `warpsmith program report --goal 2` sets one")
    goal = f"{context.goal.speedup:g}x over the first original"
    if total is None:
        return Md(f"{goal}; not measured for the present program")
    return Md(f"{goal}: {'achieved' if context.goal.is_reached(total) else 'not achieved'}")


def _format_total(total: TrialsTotal | None, present: Sequence[TrialFile], any_kept: bool) -> Md:
    """Render the total in one or two sentences."""
    if not any_kept:
        return Md("No optimization was kept: the program is unchanged.")
    if total is None or tuple(total.files) != tuple(present):
        return Md("Not measured for the present program; `warpsmith program report` measures it.")
    peaks = _format_peaks(total.original, total.present)
    memory = f" Peak memory {peaks}." if peaks != format.ABSENT else ""
    return Md(
        f"The first original took {format.seconds(total.original.seconds)} per step, the present program"
        f" {format.seconds(total.present.seconds)}: {format.speedup(total.comparison)}, in one paired run on"
        f" {format.inline(total.device)}, {total.measured} UTC.{memory}"
    )


def _format_peaks(before: StepTiming | None, after: StepTiming | None) -> str:
    if not (before and after and before.peak_bytes and after.peak_bytes):
        return format.ABSENT
    return f"{before.peak_bytes / 1e9:.3g} GB to {after.peak_bytes / 1e9:.3g} GB"


def _is_kept(record: TrialRecord) -> bool:
    return record.decision.verdict is TrialVerdict.KEPT
