"""The gate's results on the red team, and the red team's cases, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from warpsmith.core.evaluation import Status, Verdict
from warpsmith.lab.gate_tests.models import CaseOutcome, Kind, RedTeamReport, RedTeamResult
from warpsmith.reporting import format

if TYPE_CHECKING:
    from rich.console import RenderableType

    from warpsmith.lab.gate_tests.cases import RedTeamCase

_COLUMNS = ("definition", "candidate", "class", "expected", "caught at", "status", "time")
_HIGHLIGHTED = (CaseOutcome.GOT_THROUGH, CaseOutcome.MACHINE_FAILED, CaseOutcome.REFUSED_FOR_NOISE)


def redteam_table(report: RedTeamReport) -> RenderableType:
    """Return a table with one row for each candidate."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(column)
    for result in report.results:
        style = "red" if result.outcome.wrong else "yellow" if result.deviates else ""
        # Never a bare string: rich would interpret markup in it.
        table.add_row(*(Text(format.plain(cell, 80)) for cell in _row(result)), style=style)
    return table


def redteam_summary(report: RedTeamReport, path: str | None = None) -> str:
    """Return the totals, the missing protections, the gate's errors, and the record's path."""
    return "\n".join(map(format.plain, _below(report, path)))


def redteam_classes(cases: Iterable[RedTeamCase]) -> str:
    """Return as Markdown every class of attack with the steps that should catch it, then the controls."""
    cases = tuple(cases)
    attacks = _markdown(("attack", "caught by", "tried on", "description"), _classes(cases, "attack"))
    controls = _markdown(("control", "tried on", "description"), _classes(cases, "control"))
    return f"{attacks}\n{controls}"


def _classes(cases: Iterable[RedTeamCase], kind: Kind) -> Iterator[tuple[str, ...]]:
    families: dict[str, list[RedTeamCase]] = {}
    for case in cases:
        if case.header.kind == kind:
            families.setdefault(case.header.family, []).append(case)
    for family, members in sorted(families.items(), key=lambda item: item[0].casefold()):
        steps = dict.fromkeys(step for case in members for step in case.header.caught)
        operators = sorted({f"{case.definition} {case.language}" for case in members})
        description = format.inline(members[0].header.how)
        yield (format.inline(family), *((", ".join(steps),) if steps else ()), ", ".join(operators), description)


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(result: RedTeamResult) -> tuple[str, ...]:
    header, outcome = result.header, result.outcome
    start = (result.definition, result.file.partition("/")[2], header.family)
    if outcome is CaseOutcome.NOT_RUN:
        return (*start, f"(not run: {result.message})", "", "", "")
    expected = "refused" if header.kind == "attack" else "accepted"
    return (*start, expected, _caught(result), _reached(result), format.seconds(result.seconds))


def _reached(result: RedTeamResult) -> str:
    """Return the status, or the verdict if no workload failed."""
    if result.status is not Status.PASSED:
        return result.status or format.ABSENT
    untimed = result.verdict is Verdict.INVALID and result.outcome is not CaseOutcome.MACHINE_FAILED
    return "not timed" if untimed else result.verdict or format.ABSENT


def _caught(result: RedTeamResult) -> str:
    if result.outcome in _HIGHLIGHTED:
        return result.outcome.upper()
    step = result.step or format.ABSENT
    if not result.deviates:
        return step
    return f"{step} (not {', '.join((*result.header.caught, *result.header.status))})"


def _below(report: RedTeamReport, path: str | None) -> Iterator[str]:
    yield _total(report, "attack", "attack", CaseOutcome.CAUGHT, CaseOutcome.GOT_THROUGH)
    yield _total(report, "control", "honest control", CaseOutcome.ACCEPTED, CaseOutcome.REFUSED)
    if report.deviations:
        yield f"refused at another step than expected: {format.count_noun(len(report.deviations), 'attack')}"
    if report.not_in_force:
        missing = ", ".join(f"{check.name} ({check.how.rstrip('.')})" for check in report.not_in_force)
        yield f"not in force on this machine: {missing}"
    for result in (*report.wrong, *report.unseen, *report.failed):
        yield f"{result.outcome}: {result.file}: {result.message}"
    if path:
        yield f"record: {path}"


def _total(report: RedTeamReport, kind: Kind, noun: str, *always: CaseOutcome) -> str:
    """`61 attacks: 52 caught, 0 got through, 9 not run (8: no GPU; 1: no sanitizer here)`."""
    counts = report.attacks if kind == "attack" else report.controls
    parts = [f"{counts.get(outcome, 0)} {outcome}" for outcome in always]
    parts += [f"{number} {outcome}" for outcome, number in counts.items() if outcome not in always]
    messages = Counter(
        r.message for r in report.results if r.outcome is CaseOutcome.NOT_RUN and r.header.kind == kind
    )
    reasons = f" ({'; '.join(f'{number}: {text}' for text, number in messages.most_common())})" if messages else ""
    parts.sort(key=lambda part: part.endswith(CaseOutcome.NOT_RUN))  # the reasons follow it
    return f"{format.count_noun(sum(counts.values()), noun)}: {', '.join(parts)}{reasons}"
