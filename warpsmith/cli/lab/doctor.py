"""`warpsmith doctor`: what this machine has and lacks for the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import MachineLacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from warpsmith.lab.doctor.models import Diagnosis, Group

_STYLES = {"ok": "green", "gap": "yellow", "missing": "red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the model, one row a check.")] = False,
) -> None:
    """Say what this machine has and lacks for the loop: Ready, Ready with gaps, or Not ready.

    Nothing is measured or changed. `missing` is what the loop would use here, `gap` what it can do without.
    Exit code 4: not ready.
    """
    from warpsmith.lab.doctor.models import Answer
    from warpsmith.lab.doctor.report import diagnose

    found = diagnose()
    console.out_json(found) if as_json else _show(found)
    if found.answer is Answer.NOT_READY:
        raise typer.Exit(MachineLacks.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def _show(found: Diagnosis) -> None:
    from rich.text import Text

    shown = console.stdout()
    if not shown.is_terminal:
        shown.width = 400  # whole lines for whoever reads a pipe
    shown.print(_table(found))
    shown.print(Text(_ending(found), style="bold"))


def _table(found: Diagnosis) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    told: set[str] = set()
    for group in found.groups:
        for number, (state, text) in enumerate(_lines(group, told)):
            name = "" if number else group.name
            table.add_row(Text(name, "bold"), Text(state, _STYLES.get(state, "")), Text(text))
    return table


def _lines(group: Group, told: set[str]) -> Iterator[tuple[str, str]]:
    """State and text: what is there on one line, then the rest; the same `Fix:` is told once."""
    there = [f"{row.name}: {row.found}" for row in group.rows if row.state == "ok"]
    if there:
        yield "ok", "; ".join(there)
    for row in (row for row in group.rows if row.state != "ok"):
        yield row.state, f"{row.name}: {'; '.join(text for text in (row.found.rstrip('.'), row.means) if text)}"
        if row.fix and row.fix not in told:
            told.add(row.fix)
            yield "", f"Fix: {row.fix}"


def _ending(found: Diagnosis) -> str:
    if found.first is not None:
        return f"{found.answer}. First: {found.first}"
    lacks = [row.name for group in found.groups for row in group.rows if row.state == "missing"]
    without = f", without: {', '.join(lacks)}" if lacks else ""
    return f"{found.answer}: versions can be judged on {' and '.join(found.judges)}{without}."
