"""`warpsmith hook`: the command in hooks/hooks.json. `warpsmith.__main__` handles the usual call without typer."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def hook_command(
    name: Annotated[str, typer.Argument(help="Name of the hook: session, guard, stop or answer.")],
) -> None:
    """Answer a hook event of Claude Code from stdin. WARPSMITH_HOOKS=off disables all hooks."""
    from warpsmith.hooks import run

    raise typer.Exit(run.run_hook(name, sys.stdin, sys.stdout))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("hook")(hook_command)
