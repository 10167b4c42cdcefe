"""`warpsmith new` and `warpsmith export`: import a definition, or export an operator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Op = Annotated[str, typer.Argument(help="Operator: the name of its folder under kernels/.")]


def new_command(
    op: Op,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="KernelBench problem (.py) or FlashInfer-Trace definition (.json)."),
    ] = None,
    workloads: Annotated[
        Path | None,
        typer.Option(help="FlashInfer-Trace workloads (.jsonl); by default those of the data set."),
    ] = None,
) -> None:
    """Create an operator's definition: a working example to edit, or a conversion of an existing problem."""
    from warpsmith.cli import console
    from warpsmith.interchange.create import create_definition
    from warpsmith.project import find_project

    project = find_project()
    path, draft = create_definition(project, op, source, workloads)
    for note in draft.notes:
        console.tell(note)
    console.out(project.relative(path))
    console.tell(f"Next: review the definition, then `warpsmith start {op} --target TARGET --language LANGUAGE`.")


def export_command(
    op: Op,
    to: Annotated[
        Path | None, typer.Option(help="Folder of the data set; by default flashinfer-trace/ in the project.")
    ] = None,
) -> None:
    """Export the operator, its workloads and all versions as a FlashInfer-Trace data set."""
    from warpsmith.cli import console
    from warpsmith.interchange.flashinfer_export import export_operator as write
    from warpsmith.project import find_project

    project = find_project()
    for path in write(project, op, to or project.root / "flashinfer-trace"):
        console.out(project.relative(path))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("new")(new_command)
    app.command("export")(export_command)
