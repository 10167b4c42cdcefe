"""`warpsmith hook`: what hooks/hooks.json calls. The usual call does not come here: see `warpsmith.__main__`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def hook(name: Annotated[str, typer.Argument(help="guard, stop or contract.")]) -> None:
    """Answer an event of Claude Code on stdin; WARPSMITH_HOOKS=off switches all hooks off."""
    from warpsmith.hooks import run

    raise typer.Exit(run.run(name, sys.stdin, sys.stdout))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(hook)
