"""A CUDA graph check formatted as text: a table of blockers, then the verdict with its evidence."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from warpsmith.cli import console
from warpsmith.program.capture.models import CaptureAttempt, CoveredModule, GraphCheck
from warpsmith.reporting import format

_STYLES = {"certain": "red", "likely": "yellow", "look": "dim"}
_WIDTH = 400
"""Width of the table outside a terminal: text for an agent must not be cut to the width of a pipe."""

_LISTED = 6


def print_graph_check(check: GraphCheck) -> None:
    """Print the blockers, the capture attempts, the verdict and the notes."""
    stdout = console.stdout()
    if not stdout.is_terminal:
        stdout.width = _WIDTH
    if check.blockers:
        stdout.print(_blocker_table(check))
    else:
        console.out("no blocker was found")
    for line in _summary_lines(check):
        console.out(line)


def _blocker_table(check: GraphCheck) -> Table:
    table = Table("", "what", "where", "why", "mend", "seen", box=None, pad_edge=False)
    for blocker in check.blockers:
        where = f"{blocker.file}:{blocker.line}" + (f" {blocker.function}" if blocker.function else "")
        effect = f"{blocker.effect}: {blocker.why}"
        cells = (blocker.what, where, effect, blocker.mend, ", ".join(blocker.seen))
        table.add_row(Text(blocker.certainty, _STYLES[blocker.certainty]), *map(Text, cells))
    return table


def _summary_lines(check: GraphCheck) -> Iterator[str]:
    if check.whole is not None:
        yield f"step: {_format_attempt(check.whole)}"
    for attempt in check.parts:
        yield f"{attempt.what}: {_format_attempt(attempt)}"
    prefix = "" if check.level == "capture" else "expected: "
    yield f"{prefix}{check.verdict}{_format_covered(check)} (evidence: {check.level})"
    for note in check.notes:
        yield f"note: {note}"


def _format_covered(check: GraphCheck) -> str:
    if not check.covered:
        return ""
    modules = ", ".join(_list_covered(check.covered))
    return f" (modules {modules}, {format.percent(check.share)} of the step)"


def _list_covered(covered: tuple[CoveredModule, ...]) -> list[str]:
    words = [f"{module.name}: {module.kind}" for module in covered[:_LISTED]]
    return words + ([f"and {len(covered) - _LISTED} more"] if len(covered) > _LISTED else [])


def _format_attempt(attempt: CaptureAttempt) -> str:
    if not attempt.captured:
        return f"not captured: {attempt.error}"
    if attempt.error:
        return f"captured, but {attempt.error}"
    result = f"captured, {_format_comparison(attempt)}"
    if attempt.speedup:
        eager, replay = format.seconds(attempt.eager_seconds), format.seconds(attempt.replay_seconds)
        return f"{result}; eager {eager}, graph {replay}: {format.factor(attempt.speedup)}"
    return f"{result}; not timed: the step cannot run often enough"


def _format_comparison(attempt: CaptureAttempt) -> str:
    if attempt.equal is None:
        return "nothing to compare"
    if attempt.equal:
        return f"{attempt.steps} replays equal to eager steps (difference {attempt.difference:.1e})"
    return f"but replays differ from eager steps (difference {attempt.difference:.1e})"
