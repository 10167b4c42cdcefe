"""`warpsmith hardware` and `warpsmith ceiling`: figures of a device kind, and what this machine reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import Misuse, SolutionFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.core.hardware import Measurement
    from warpsmith.lab.machine.hardware import HardwarePage

_LOGGED = 10
"""A/A judgements from one line of a log to the next."""

Json = Annotated[bool, typer.Option("--json", help="Print the models as they stand on disk.")]


def hardware(
    target: Annotated[str | None, typer.Argument(help="A target's id; without it, list them.")] = None,
    figure: Annotated[str | None, typer.Option(help="Print this one figure with its source.")] = None,
    as_json: Json = False,
) -> None:
    """Show the sourced figures of a target; UNKNOWN ones are never computed with."""
    from warpsmith import project
    from warpsmith.lab.machine import hardware as pages

    here = project.find()
    if target is None:
        if figure is not None:
            raise Misuse("`--figure` needs a target: `warpsmith hardware TARGET --figure NAME`.")
        _list(pages.targets(here), as_json)
        return
    page = pages.read(here, target)
    if figure is not None:
        found = pages.figure(page, figure)
        console.out_json(found) if as_json else console.out(found.text)
    elif as_json:
        console.out_json(page.target)
    else:
        _figures(page)


def ceiling(
    target: Annotated[str | None, typer.Option(help="A target's id; by default the machine at hand's.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what this machine reaches at best, and keep it; takes some seconds of an idle machine."""
    from warpsmith import project
    from warpsmith.lab.calibration import measurement as bench
    from warpsmith.lab.calibration.ceiling import UNSTEADY
    from warpsmith.lab.machine import hardware as pages
    from warpsmith.lab.machine.machine import measurement_path

    here = project.find()
    chosen = pages.read(here, target).target if target else pages.at_hand(here)
    with console.progress() as tell:
        measurement = bench.record(here, chosen, tell)
    console.out_json(measurement) if as_json else _ceilings(measurement)
    unsteady = [name for name, found in measurement.ceilings.items() if found.spread > UNSTEADY]
    if unsteady:
        console.tell(f"Unsteady: {', '.join(unsteady)}; the machine was busy, measure again when idle.")
    console.tell(f"Recorded in {here.relative(measurement_path(here, measurement.machine))}")


def aa(
    runs: Annotated[int, typer.Option(min=1, help="A/A judgements to make.")] = 200,
    target: Annotated[str | None, typer.Option(help="A target's id; by default the machine at hand's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the record in this file.")] = None,
    as_json: Json = False,
) -> None:
    """Judge the same code against itself and count false wins; takes minutes of an idle machine.

    `--out` is kept after each judgement: where the command is ended, the same command goes on. Exit code 1: more
    false wins than Warpsmith states.
    """
    from warpsmith import project
    from warpsmith.lab.calibration import measurement
    from warpsmith.lab.gate_tests import false_wins, unfinished
    from warpsmith.lab.machine import hardware as pages

    here = project.find()
    chosen = pages.read(here, target).target if target else pages.at_hand(here)
    with console.progress() as tell:
        measured = measurement.ensure(here, chosen, tell)
        earlier, why = false_wins.earlier(out, chosen, measured, runs) if out else (None, "")
        if out:
            console.taken_up(
                unfinished.beside(out), f"{earlier.runs} of {runs} judgements" if earlier else "", why
            )
        for found in false_wins.count(chosen, measured, runs, tell, earlier):
            if out:
                unfinished.keep(out, found)
            if found.runs % _LOGGED == 0:
                console.log(f"A/A judgement {found.runs} of {runs}: {found.accepted} accepted so far")
    if as_json:
        console.out_json(found)
    else:
        console.out(f"false wins: {found.accepted} of {found.runs} A/A judgements, at most {found.upper:.1%} with "
                    f"95 % confidence; stated: {found.stated:.0%}")  # fmt: skip
        console.out(f"no difference {found.none}, ambiguous {found.ambiguous}, regression {found.regressions}; "
                    f"largest gain {found.largest_gain:+.2%}")  # fmt: skip
    if not found.kept:
        raise typer.Exit(SolutionFailed.exit_code)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    for command in (hardware, ceiling, aa):
        app.command()(command)


def _list(targets: list[str], as_json: bool) -> None:
    import json

    console.out(json.dumps(targets) if as_json else "\n".join(targets))


def _figures(page: HardwarePage) -> None:
    rows = []
    for name, found in page.target.figures.items():
        value = found.value if isinstance(found.value, str) else f"{found.value:g}"
        rows.append((name, value, found.unit, page.citation(name), found.note))
    _table(("figure", "value", "unit", "file:line", "note"), rows)


def _ceilings(measurement: Measurement) -> None:
    rows = [
        (name, f"{found.value:.4g}", found.unit, f"{found.best:.4g}", f"{found.spread:.1%}", found.how)
        for name, found in measurement.ceilings.items()
    ]
    _table(("ceiling", "median", "unit", "best", "spread", "how"), rows)


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    shown = console.stdout()
    # As wide as its content: a table cut to 80 columns would lose what an agent reads.
    shown.width = 400
    shown.print(table)
