"""`warpsmith redteam`: run attacks and honest controls against the gate of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith import termination
from warpsmith.cli import console
from warpsmith.cli.options import Json, Target
from warpsmith.errors import MachineFailed, SolutionFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warpsmith.core.hardware import Machine
    from warpsmith.lab.gate_tests.cases import RedTeamCase
    from warpsmith.lab.gate_tests.models import RedTeamReport, RedTeamResult
    from warpsmith.lab.gate_tests.redteam import RedTeam

_MOST_NAMES = 5
_MOST_JOBS = 4


def redteam_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Globs of definitions or candidates; by default all.")
    ] = None,
    target: Target = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder of your own candidates, instead of the shipped ones.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel candidates during checks that are not timed; by default a few."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also fail if an attack is caught by another check than its header names."),
    ] = False,
    poor: Annotated[
        bool, typer.Option("--poor", help="Leave each definition two timed sizes and no odd ones.")
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="Only list the candidates, as Markdown.")] = False,
    out: Annotated[Path | None, typer.Option(help="File of the record; by default under .warpsmith.")] = None,
    as_json: Json = False,
) -> None:
    """Attack the gate: it must refuse every attack and accept every honest control.

    The candidates run on this machine and are harmless by design. The record is written after each candidate; if
    the command is interrupted, the same command continues. Exit code 1: an attack was accepted or a control was
    refused; 4: the machine failed at a candidate.
    """
    from warpsmith.lab.gate_tests import cases as redteam_cases
    from warpsmith.lab.gate_tests import unfinished
    from warpsmith.lab.gate_tests.redteam import RedTeam
    from warpsmith.lab.machine import hardware, system
    from warpsmith.project import find_project

    cases = redteam_cases.load_cases(folder or redteam_cases.CORPUS, names or ())
    if listed:
        from warpsmith.reporting import redteam as tables

        console.out(tables.redteam_classes(cases))
        return
    project = find_project()
    chosen = hardware.choose_target(project, target)
    with console.progress() as tell, RedTeam(project, chosen, tell=tell, poor=poor) as team:
        path = out or project.scratch / "redteam" / _file_name(team.machine, poor)
        results = _earlier_results(team, cases, path)
        remaining = [case for case in cases if case.name not in {result.file for result in results}]
        try:
            for result in team.run(remaining, jobs or min(_MOST_JOBS, system.usable_cores())):
                results.append(result)
                unfinished.save_record(path, team.report(results, finished=False))
                console.tell_without_terminal(
                    f"{len(results)} of {len(cases)}: {result.file}: {result.outcome}, {result.seconds:.1f} s"
                )
        except KeyboardInterrupt:
            partial = project.relative(unfinished.unfinished_path(path)) if results else None
            _print_report(team.report(results, finished=False), partial, as_json)
            raise typer.Exit(termination.INTERRUPTED) from None
        report = team.report(results)
    unfinished.save_record(path, report)
    _print_report(report, project.relative(path), as_json)
    _raise_failures(report, strict)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("redteam")(redteam_command)


def _file_name(machine: Machine, poor: bool) -> str:
    from warpsmith.core.base import this_minute

    return f"redteam{'-poor' if poor else ''}-{machine.id}-{this_minute()[:10].replace('-', '')}.json"


def _earlier_results(team: RedTeam, cases: Sequence[RedTeamCase], path: Path) -> list[RedTeamResult]:
    earlier, obstacle = team.earlier_results(path, cases)
    from warpsmith.lab.gate_tests import unfinished

    console.tell_continuation(
        unfinished.unfinished_path(path), f"{len(earlier)} of {len(cases)} candidates" if earlier else "", obstacle
    )
    return list(earlier)


def _print_report(report: RedTeamReport, path: str | None, as_json: bool) -> None:
    from warpsmith.reporting import redteam as tables

    if as_json:
        console.out_json(report)
        return
    output = console.stdout()
    if not output.is_terminal:
        output.width = 400  # no line breaks in a pipe
    output.print(tables.redteam_table(report))
    console.out(tables.redteam_summary(report, path))


def _raise_failures(report: RedTeamReport, strict: bool) -> None:
    """Raise an error unless the gate held.

    Raises:
        SolutionFailed: it did not hold; with `strict`, also for a deviation from a header.
        MachineFailed: the machine failed at some candidates.
    """
    if report.wrong:
        raise SolutionFailed(f"The gate does not hold: it was wrong about {_list_names(report.wrong)}.")
    if strict and report.deviations:
        raise SolutionFailed(f"Caught by another check than the header names: {_list_names(report.deviations)}.")
    if report.failed:
        raise MachineFailed(f"The machine failed at {_list_names(report.failed)}; run them again.")


def _list_names(results: Iterable[RedTeamResult]) -> str:
    names = [result.file for result in results]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
