"""Page of a program's trials: each optimization, and the total of all. Rendered from records alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.core.trial import (
    RankedRecommendation,
    StepTiming,
    TrialFile,
    TrialRecord,
    TrialsTotal,
    TrialVerdict,
)
from warpsmith.knowledge import index
from warpsmith.program.trials import next_action, trials_total
from warpsmith.program.trials.trial_store import Trials
from warpsmith.reporting import format
from warpsmith.reporting.format import Md
from warpsmith.reporting.templating import fill_template

PAGE_NAME = "README.md"
"""Name of the page in the folder of a program."""


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
        program_page(trials.name, trials.records(), trials.total(), trials_total.present_files(trials), remaining),
    )
    index.update_pages(trials.project)
    return path


def program_page(
    name: str,
    records: Mapping[int, TrialRecord],
    total: TrialsTotal | None,
    present: Sequence[TrialFile],
    remaining: Sequence[RankedRecommendation] = (),
) -> str:
    """Render the page of one program.

    Args:
        name: the program's name.
        records: its closed trials by number.
        total: the last measured total; None if it was not measured.
        present: every file that a kept trial edited, with its present content.
        remaining: the recommendations of the last analysis, with their states.
    """
    return fill_template(
        "program",
        name=name,
        rows=[_table_row(number, record) for number, record in sorted(records.items())],
        total=_format_total(total, present, any(_is_kept(record) for record in records.values())),
        trials=[_trial_section(number, record) for number, record in sorted(records.items())],
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


def _trial_section(number: int, record: TrialRecord) -> dict[str, object]:
    """Return the section of one trial below the table."""
    return {
        "title": Md(f"{number:03d}: {format.inline(record.plan.entry)}"),
        "lines": [Md(line) for line in _trial_lines(record)],
    }


def _trial_lines(record: TrialRecord) -> Iterator[str]:
    plan, numerics = record.plan, record.numerics
    files = format.comma_list(format.code(file.path) for file in plan.files)
    yield f"{files} on {format.inline(plan.device)}, {record.closed} UTC."
    unmet = [check for check in plan.prerequisites.checks if check.state != "ok"]
    for check in unmet:
        yield f"Prerequisite {format.code(check.name)}, {check.state}: {format.inline(check.evidence)}."
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
