"""A CUDA graph check as text: a table of blockers, then the verdict with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from warpsmith.cli import console
from warpsmith.program.capture.models import Covered, GraphCheck, Trial
from warpsmith.reporting import format

_STYLES = {"certain": "red", "likely": "yellow", "look": "dim"}
_WIDTH = 400
"""As wide as its content: what an agent reads is not cut to the width of a pipe."""

_NAMED = 6


def show(check: GraphCheck) -> None:
    """Print it."""
    shown = console.stdout()
    if not shown.is_terminal:
        shown.width = _WIDTH
    if check.blockers:
        shown.print(_table(check))
    else:
        console.out("nothing was found that stands in the way")
    for line in _lines(check):
        console.out(line)


def _table(check: GraphCheck) -> Table:
    table = Table("", "what", "where", "why", "mend", "seen", box=None, pad_edge=False)
    for one in check.blockers:
        where = f"{one.file}:{one.line}" + (f" {one.function}" if one.function else "")
        cells = (one.what, where, f"{one.effect}: {one.why}", one.mend, ", ".join(one.seen))
        table.add_row(Text(one.certainty, _STYLES[one.certainty]), *map(Text, cells))
    return table


def _lines(check: GraphCheck) -> Iterator[str]:
    if check.whole is not None:
        yield f"step: {_trial(check.whole)}"
    for trial in check.parts:
        yield f"{trial.what}: {_trial(trial)}"
    tried = "" if check.level == "capture" else "expected: "
    yield f"{tried}{check.verdict}{_parts(check)} (evidence: {check.level})"
    for note in check.notes:
        yield f"note: {note}"


def _parts(check: GraphCheck) -> str:
    if not check.covered:
        return ""
    share = f", {format.percent(check.share)} of the step" if any(one.share for one in check.covered) else ""
    return f" (modules {', '.join(_named(check.covered))}{share})"


def _named(covered: tuple[Covered, ...]) -> list[str]:
    names = [one.name if one.name == one.kind else f"{one.name}: {one.kind}" for one in covered[:_NAMED]]
    return names + ([f"and {len(covered) - _NAMED} more"] if len(covered) > _NAMED else [])


def _trial(trial: Trial) -> str:
    if not trial.captured:
        return f"not captured: {trial.error}"
    if trial.error:
        return f"captured, but {trial.error}"
    told = f"captured, {_compared(trial)}"
    if trial.speedup:
        eager, replay = format.seconds(trial.eager_seconds), format.seconds(trial.replay_seconds)
        return f"{told}; eager {eager}, graph {replay}: {format.factor(trial.speedup)}"
    return f"{told}; no times: it cannot be run as often as they need"


def _compared(trial: Trial) -> str:
    if trial.equal is None:
        return "nothing to compare"
    if trial.equal:
        return f"{trial.steps} replays equal to eager steps (difference {trial.difference:.1e})"
    return f"but replays are not what eager steps give (difference {trial.difference:.1e})"
