"""`warpsmith redteam`: attacks and honest controls against the gate, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import MachineFailed, SolutionFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.core.hardware import Machine
    from warpsmith.lab.gate_tests.cases import Case
    from warpsmith.lab.gate_tests.models import RedTeamReport, Result
    from warpsmith.lab.gate_tests.redteam import RedTeam

_INTERRUPTED = 130
_NAMED = 5
_MOST_JOBS = 4


def redteam(
    names: Annotated[list[str] | None, typer.Argument(help="Definitions or candidates, as globs; all.")] = None,
    target: Annotated[str | None, typer.Option(help="The device kind; by default the machine at hand's.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Candidates of your own in place of the shipped.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates at a time where nothing is timed; by default a few."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="An attack caught otherwise than its header says fails too.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Only say what there is, as Markdown.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where the record goes; by default under .warpsmith.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as it stands on disk.")] = False,
) -> None:
    """Try to fool the gate: every attack must be refused, every honest control accepted.

    The candidates run on this machine and are harmless by design. The record is kept after each of them: where the
    command is ended, the same command goes on. Exit code 1: an attack got through or a control was refused; 4: the
    machine failed at some.
    """
    from warpsmith import project
    from warpsmith.lab.gate_tests import cases as redteam_cases
    from warpsmith.lab.gate_tests import unfinished
    from warpsmith.lab.gate_tests.redteam import RedTeam
    from warpsmith.lab.machine import hardware, machine

    cases = redteam_cases.load(folder or redteam_cases.CORPUS, names or ())
    if listed:
        from warpsmith.reporting import redteam as tables

        console.out(tables.classes(cases))
        return
    here = project.find()
    chosen = hardware.read(here, target).target if target else hardware.at_hand(here)
    with console.progress() as tell, RedTeam(here, chosen, tell=tell) as team:
        path = out or here.root / ".warpsmith" / "redteam" / _file_name(team.machine)
        results = _taken_up(team, cases, path)
        left = [case for case in cases if case.name not in {result.file for result in results}]
        try:
            for result in team.run(left, jobs or min(_MOST_JOBS, machine.usable_cores())):
                results.append(result)
                unfinished.keep(path, team.report(results, finished=False))
                console.log(
                    f"{len(results)} of {len(cases)}: {result.file}: {result.outcome}, {result.seconds:.1f} s"
                )
        except KeyboardInterrupt:
            grown = here.relative(unfinished.beside(path)) if results else None
            _show(team.report(results, finished=False), grown, as_json)
            raise typer.Exit(_INTERRUPTED) from None
        report = team.report(results)
    unfinished.keep(path, report)
    _show(report, here.relative(path), as_json)
    _end(report, strict)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(redteam)


def _file_name(machine: Machine) -> str:
    from warpsmith.core.base import this_minute

    return f"redteam-{machine.id}-{this_minute()[:10].replace('-', '')}.json"


def _taken_up(team: RedTeam, cases: Sequence[Case], path: Path) -> list[Result]:
    known, why = team.earlier(path, cases)
    from warpsmith.lab.gate_tests import unfinished

    console.taken_up(unfinished.beside(path), f"{len(known)} of {len(cases)} candidates" if known else "", why)
    return list(known)


def _show(report: RedTeamReport, path: str | None, as_json: bool) -> None:
    from warpsmith.reporting import redteam as tables

    if as_json:
        console.out_json(report)
        return
    shown = console.stdout()
    if not shown.is_terminal:
        shown.width = 400  # whole lines for whoever reads a pipe
    shown.print(tables.table(report))
    console.out(tables.below(report, path))


def _end(report: RedTeamReport, strict: bool) -> None:
    """The exit code says whether the gate held.

    Raises:
        SolutionFailed: it did not; with `strict`, not as the headers say.
        MachineFailed: at some candidates nobody knows.
    """
    if report.wrong:
        raise SolutionFailed(f"The gate does not hold: it was wrong about {_named(report.wrong)}.")
    if strict and report.deviations:
        raise SolutionFailed(f"Caught otherwise than the header says: {_named(report.deviations)}.")
    if report.failed:
        raise MachineFailed(f"The machine failed at {_named(report.failed)}; run them again.")


def _named(results: Iterable[Result]) -> str:
    names = [result.file for result in results]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
