"""`warpsmith doctor`: what this machine has for the loop, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.errors import MachineLacks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from warpsmith.lab.doctor.models import DoctorGroup, DoctorReport

_STYLES = {"ok": "green", "gap": "yellow", "missing": "red"}


def doctor_command(
    context: Annotated[
        str | None, typer.Option(help="Check another machine, by its name in `warpsmith context list`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a machine for the loop: Ready, Ready with gaps, or Not ready.

    Nothing is measured or changed; with --context the lab is brought to the machine. The loop needs what is
    `missing` and can work without a `gap`. Exit code 4: not ready.
    """
    from warpsmith.lab.doctor.checks import examine_machine
    from warpsmith.lab.doctor.models import Readiness

    diagnosis = examine_machine() if context in (None, "local") else _examine_context(str(context))
    console.out_json(diagnosis) if as_json else _print_diagnosis(diagnosis)
    if diagnosis.answer is Readiness.NOT_READY:
        raise typer.Exit(MachineLacks.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor_command)


def _examine_context(name: str) -> DoctorReport:
    from warpsmith.execution import contexts, examine
    from warpsmith.project import find_project

    project = find_project()
    with console.progress() as tell:
        return examine.examine_context(project, contexts.find_context(project, name), tell)


def _print_diagnosis(diagnosis: DoctorReport) -> None:
    from rich.text import Text

    output = console.stdout()
    if not output.is_terminal:
        output.width = 400  # no line breaks in a pipe
    output.print(_table(diagnosis))
    output.print(Text(_ending(diagnosis), style="bold"))


def _table(diagnosis: DoctorReport) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    fixes: set[str] = set()
    for group in diagnosis.groups:
        for number, (state, text) in enumerate(_lines(group, fixes)):
            name = "" if number else group.name
            table.add_row(Text(name, "bold"), Text(state, _STYLES.get(state, "")), Text(text))
    return table


def _lines(group: DoctorGroup, fixes: set[str]) -> Iterator[tuple[str, str]]:
    """Yield state and text: all that is present on one line, then the rest; each `Fix:` appears once."""
    present = [f"{row.name}: {row.found}" for row in group.rows if row.state == "ok"]
    if present:
        yield "ok", "; ".join(present)
    for row in (row for row in group.rows if row.state != "ok"):
        yield row.state, f"{row.name}: {'; '.join(text for text in (row.found.rstrip('.'), row.means) if text)}"
        if row.fix and row.fix not in fixes:
            fixes.add(row.fix)
            yield "", f"Fix: {row.fix}"


def _ending(diagnosis: DoctorReport) -> str:
    if diagnosis.first is not None:
        return f"{diagnosis.answer}. First: {diagnosis.first}"
    missing = [row.name for group in diagnosis.groups for row in group.rows if row.state == "missing"]
    gaps = f", without: {', '.join(missing)}" if missing else ""
    return f"{diagnosis.answer}: versions can be judged on {' and '.join(diagnosis.judges)}{gaps}."
