"""`warpsmith port`: compile an operator's standing versions for devices that are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.errors import MissingInput, SolutionFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpsmith.port.models import PortRecord
    from warpsmith.port.versions import PortVersion
    from warpsmith.project import Project

_LINES = 12
"""Lines of one target on the terminal; the page has all."""


def port_command(
    op: Annotated[str, typer.Argument(help="Operator.")],
    to: Annotated[
        str,
        typer.Option(
            metavar="TARGET,TARGET...",
            help="Architectures such as `gfx942` or `sm_120`, and device kinds such as `mi300x`.",
        ),
    ],
    version: Annotated[
        str,
        typer.Option(
            help="Version such as `triton/v3`, or draft such as `flydsl/01_rows`; by default the best accepted"
            " Triton version of each target."
        ),
    ] = "",
    numerics: Annotated[
        bool, typer.Option(help="Check the version by the interpreter as well, which can take minutes.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Compile an operator's best Triton versions, or the one that --version names, for devices that are not here.

    Registers, spills, shared memory and occupancy come from the compiled code, correctness from the interpreter if
    the language has one. Nothing is timed: no version is accepted by it, and `best()` never takes one. The record
    and its page lie in devlog/<op>/ports/. Exit code 1: a version compiles for no target, or the interpreter finds
    it wrong; 2: a target is unknown; 3: no version was accepted yet; 4: the language is missing.
    """
    from warpsmith.lab.operator import definition_file
    from warpsmith.port import compile as port_compile
    from warpsmith.port import devices
    from warpsmith.port import numerics as port_numerics
    from warpsmith.port.models import Numerics
    from warpsmith.project import find_project
    from warpsmith.reporting.port import page
    from warpsmith.use import choice

    project, owner = find_project(), choice.find_owning_project(op)
    language = "triton" if not version else version.split("/")[0]
    compiler = port_compile.require_portable(language)
    architectures = compiler.port_architectures()
    requested = devices.parse_devices(owner, to, architectures)
    file = definition_file.load_definition(owner.definition_path(op))
    records = []
    for solution, accepted_on in _choose_versions(owner, op, version, language):
        origin = devices.find_device(owner, accepted_on or compiler.architecture(None), architectures)
        request = port_compile.PortRequest(owner, file, solution, origin, requested, accepted_on)
        with console.progress() as tell:
            checked = Numerics(state="unchecked")
            if numerics:
                tell(f"{solution.name}: checking by the interpreter")
                checked = port_numerics.check_numerics(owner, file, solution, tell)
            record = port_compile.compile_port(request, checked, tell)
        folder = page.write_port(project, record)
        records.append(record)
        console.out_line_json(record) if as_json else _print_record(record, project.relative(folder))
    failed = [record for record in records if _has_failed(record)]
    if failed:
        raise typer.Exit(SolutionFailed.exit_code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("port")(port_command)


def _choose_versions(project: Project, op: str, name: str, language: str) -> list[tuple[PortVersion, str | None]]:
    """Return the versions to compile, each with the device kind that it stands accepted on.

    Raises:
        MissingInput: none was accepted yet, or the named one has no file.
        Misuse: the name is none of a version.
    """
    from warpsmith.campaign.history.drafts import find_port_version, list_port_versions
    from warpsmith.lab.machine import hardware
    from warpsmith.use import choice

    standing: dict[str, str] = {}
    for target in hardware.list_targets(project):
        accepted = [v for v in choice.accepted_versions(project, op, target) if v.language == language]
        for each in accepted if name else accepted[:1]:
            standing.setdefault(each.solution, target)
    if name:
        return [(find_port_version(project, op, name), standing.get(name))]
    if not standing:
        names = ", ".join(list_port_versions(project, op, language))
        advice = f"name one with --version: {names}" if names else "and there is neither a version nor a draft"
        raise MissingInput(f"No {language} version of {op} was accepted yet; {advice}.")
    return [(find_port_version(project, op, each), target) for each, target in standing.items()]


def _has_failed(record: PortRecord) -> bool:
    refused = all(target.outcome == "does not compile" for target in record.targets)
    return refused or record.numerics.state == "failed"


def _print_record(record: PortRecord, folder: str) -> None:
    from warpsmith.reporting.port import page

    console.out(page.head_line(record))
    console.out(page.numerics_line(record))
    console.out_table(page.COLUMNS, page.target_rows(record))
    for target in record.targets:
        _print_lines(f"{target.arch}:", list(page.target_lines(target, record)))
    console.out(f"{folder}/port.md has every kernel")


def _print_lines(title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console.out(title)
    for line in lines[:_LINES]:
        console.out(f"  {line}")
    if len(lines) > _LINES:
        console.out(f"  more on the page: {len(lines) - _LINES}")
