"""`warpsmith new` and `warpsmith export`: definitions come in, and go out to others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Op = Annotated[str, typer.Argument(help="The operator: its folder under kernels/.")]


def new(
    op: Op,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A KernelBench problem (.py) or a FlashInfer-Trace definition (.json)."),
    ] = None,
    workloads: Annotated[
        Path | None,
        typer.Option(help="FlashInfer-Trace workloads (.jsonl); by default those of the data set."),
    ] = None,
) -> None:
    """Write an operator's definition: a working example to edit, or one made from a problem that exists."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.interchange.create import create

    here = project.find()
    path, draft = create(here, op, source, workloads)
    for note in draft.notes:
        console.tell(note)
    console.out(here.relative(path))
    console.tell(f"Next: read it, then `warpsmith start {op} --target TARGET --language LANGUAGE`.")


def export(
    op: Op,
    to: Annotated[
        Path | None, typer.Option(help="Where the data set goes; by default flashinfer-trace/ in the project.")
    ] = None,
) -> None:
    """Write the operator, its workloads and every version as a FlashInfer-Trace data set."""
    from warpsmith import project
    from warpsmith.cli import console
    from warpsmith.interchange.flashinfer_export import export as write

    here = project.find()
    for path in write(here, op, to or here.root / "flashinfer-trace"):
        console.out(here.relative(path))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(new)
    app.command()(export)
