"""What the gate did to the red team, and what the red team consists of, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from warpsmith.core.evaluation import Status, Verdict
from warpsmith.lab.gate_tests.models import Kind, Outcome, RedTeamReport, Result
from warpsmith.reporting import format

if TYPE_CHECKING:
    from rich.console import RenderableType

    from warpsmith.lab.gate_tests.cases import Case

_COLUMNS = ("definition", "candidate", "class", "expected", "caught at", "status", "time")
_LOUD = (Outcome.GOT_THROUGH, Outcome.MACHINE_FAILED)


def table(report: RedTeamReport) -> RenderableType:
    """One row a candidate."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        shown.add_column(column)
    for result in report.results:
        style = "red" if result.outcome.wrong else "yellow" if result.deviates else ""
        # Never a bare string: rich would read markup in it.
        shown.add_row(*(Text(format.plain(cell, 80)) for cell in _row(result)), style=style)
    return shown


def below(report: RedTeamReport, path: str | None = None) -> str:
    """The totals, what was not in force, where the gate was wrong, and where the record is on disk."""
    return "\n".join(map(format.plain, _below(report, path)))


def classes(cases: Iterable[Case]) -> str:
    """Markdown: every class of attack with the steps that are to catch it, then what the controls are."""
    cases = tuple(cases)
    attacks = _markdown(("attack", "caught by", "tried at", "what it does"), _classes(cases, "attack"))
    controls = _markdown(("control", "tried at", "what it does"), _classes(cases, "control"))
    return f"{attacks}\n{controls}"


def _classes(cases: Iterable[Case], kind: Kind) -> Iterator[tuple[str, ...]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        if case.header.kind == kind:
            found.setdefault(case.header.family, []).append(case)
    for family, members in sorted(found.items(), key=lambda item: item[0].casefold()):
        steps = dict.fromkeys(step for case in members for step in case.header.caught)
        places = sorted({f"{case.definition} {case.language}" for case in members})
        how = format.inline(members[0].header.how)
        yield (format.inline(family), *((", ".join(steps),) if steps else ()), ", ".join(places), how)


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(result: Result) -> tuple[str, ...]:
    header, outcome = result.header, result.outcome
    start = (result.definition, result.file.partition("/")[2], header.family)
    if outcome is Outcome.NOT_RUN:
        return (*start, f"(not run: {result.message})", "", "", "")
    expected = "refused" if header.kind == "attack" else "accepted"
    return (*start, expected, _caught(result), _reached(result), format.seconds(result.seconds))


def _reached(result: Result) -> str:
    """The status; where no workload failed the verdict."""
    if result.status is not Status.PASSED:
        return result.status or format.ABSENT
    untimed = result.verdict is Verdict.INVALID and result.outcome is not Outcome.MACHINE_FAILED
    return "not timed" if untimed else result.verdict or format.ABSENT


def _caught(result: Result) -> str:
    if result.outcome in _LOUD:
        return result.outcome.upper()
    step = result.step or format.ABSENT
    if not result.deviates:
        return step
    return f"{step} (not {', '.join((*result.header.caught, *result.header.status))})"


def _below(report: RedTeamReport, path: str | None) -> Iterator[str]:
    yield _total(report, "attack", "attack", Outcome.CAUGHT, Outcome.GOT_THROUGH)
    yield _total(report, "control", "honest control", Outcome.ACCEPTED, Outcome.REFUSED)
    if report.deviations:
        yield f"caught otherwise than expected: {format.counted(len(report.deviations), 'attack')}"
    if report.not_in_force:
        lacking = ", ".join(f"{check.name} ({check.how.rstrip('.')})" for check in report.not_in_force)
        yield f"not in force on this machine: {lacking}"
    for result in (*report.wrong, *report.failed):
        yield f"{result.outcome}: {result.file}: {result.message}"
    if path:
        yield f"record: {path}"


def _total(report: RedTeamReport, kind: Kind, noun: str, *always: Outcome) -> str:
    """`61 attacks: 52 caught, 0 got through, 9 not run (8: no GPU; 1: no sanitizer here)`."""
    counts = report.attacks if kind == "attack" else report.controls
    parts = [f"{counts.get(outcome, 0)} {outcome}" for outcome in always]
    parts += [f"{number} {outcome}" for outcome, number in counts.items() if outcome not in always]
    why = Counter(r.message for r in report.results if r.outcome is Outcome.NOT_RUN and r.header.kind == kind)
    reasons = f" ({'; '.join(f'{number}: {text}' for text, number in why.most_common())})" if why else ""
    parts.sort(key=lambda part: part.endswith(Outcome.NOT_RUN))  # its reasons follow
    return f"{format.counted(sum(counts.values()), noun)}: {', '.join(parts)}{reasons}"
