"""A program's trials as a page: each optimization, and all of them in sum. Rendered from records alone."""

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
from warpsmith.reporting.templating import fill

PAGE_NAME = "README.md"
"""The page, in the program's folder."""


def write_program_page(trials: Trials) -> Path:
    """Write the page of a program's trials as its records and its files are now, and the knowledge's index where
    it changed; returns the page.

    Raises:
        CorruptRecord: a record does not read; nothing is written.
    """
    state = next_action.read_program_state(trials.project, trials.name)
    left = next_action.rank_recommendations(state, state.analysis) if state.analysis else ()
    path = trials.folder.parent / PAGE_NAME
    files.write(
        path, program_page(trials.name, trials.records(), trials.total(), trials_total.present_files(trials), left)
    )
    index.renew(trials.project)
    return path


def program_page(
    name: str,
    records: Mapping[int, TrialRecord],
    total: TrialsTotal | None,
    present: Sequence[TrialFile],
    left: Sequence[RankedRecommendation] = (),
) -> str:
    """The page of one program.

    Args:
        name: the program's name.
        records: its closed trials by number.
        total: the first original against the program as it was then; None: not measured.
        present: every file that a kept trial edited, as it is now.
        left: the last analysis's recommendations, and where they stand.
    """
    return fill(
        "program",
        name=name,
        rows=[_table_row(number, record) for number, record in sorted(records.items())],
        total=_format_total(total, present, any(_is_kept(record) for record in records.values())),
        trials=[_trial_section(number, record) for number, record in sorted(records.items())],
        left=[one for one in left if one.standing not in ("kept", "restored")],
    )


def _table_row(number: int, record: TrialRecord) -> Md:
    """The table's row of one trial."""
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
    """What the page says below the table of one trial."""
    return {
        "title": Md(f"{number:03d}: {format.inline(record.plan.entry)}"),
        "lines": [Md(line) for line in _trial_lines(record)],
    }


def _trial_lines(record: TrialRecord) -> Iterator[str]:
    plan, numerics = record.plan, record.numerics
    files = format.listed(format.code(file.path) for file in plan.files)
    yield f"{files} on {format.inline(plan.device)}, {record.closed} UTC."
    passed_over = [check for check in plan.prerequisites.checks if check.state != "ok"]
    for check in passed_over:
        yield f"Prerequisite {format.code(check.name)}, {check.state}: {format.inline(check.evidence)}."
    if record.edited and record.original:
        yield (
            f"First step {format.seconds(record.original.first_seconds)} before,"
            f" {format.seconds(record.edited.first_seconds)} after, in no median."
        )
    if numerics:
        worst = max(numerics.checks, key=lambda check: check.worst)
        share = "beyond measure" if worst.worst > 1e6 else f"{worst.worst:.2g} of its bound"
        yield (
            f"Numerics over {format.counted(numerics.steps, 'step')}, bounds of {format.code(numerics.precision)}:"
            f" worst is {format.code(worst.name)} at {share}."
        )
    if not record.together:
        yield "The two did not fit in memory together: processes took turns."
    for note in record.notes:
        yield format.inline(note)


def _format_total(total: TrialsTotal | None, present: Sequence[TrialFile], any_kept: bool) -> Md:
    """The sum in a sentence or two."""
    if not any_kept:
        return Md("No optimization was kept: the program is as it was.")
    if total is None or tuple(total.files) != tuple(present):
        return Md("Not measured for the program as it is now; `warpsmith program report` measures it.")
    peaks = _format_peaks(total.original, total.present)
    memory = f" Peak memory {peaks}." if peaks != format.ABSENT else ""
    return Md(
        f"The first original took {format.seconds(total.original.seconds)} a step, the program as it is"
        f" {format.seconds(total.present.seconds)}: {format.speedup(total.comparison)}, in one paired run on"
        f" {format.inline(total.device)}, {total.measured} UTC.{memory}"
    )


def _format_peaks(before: StepTiming | None, after: StepTiming | None) -> str:
    if not (before and after and before.peak_bytes and after.peak_bytes):
        return format.ABSENT
    return f"{before.peak_bytes / 1e9:.3g} GB to {after.peak_bytes / 1e9:.3g} GB"


def _is_kept(record: TrialRecord) -> bool:
    return record.decision.verdict is TrialVerdict.KEPT
