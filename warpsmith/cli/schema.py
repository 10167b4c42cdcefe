"""`warpsmith schema`: JSON Schema of every file that Warpsmith reads or writes."""

from __future__ import annotations

from typing import Annotated

import typer

from warpsmith.cli import console
from warpsmith.errors import Misuse


def schema_command(
    name: Annotated[str | None, typer.Argument(help="Kind of file; without it, list all kinds.")] = None,
) -> None:
    """Print the JSON Schema of one kind of file."""
    import json

    from warpsmith import schemas as models

    if name is None:
        console.out("\n".join(models.MODELS))
        return
    if name not in models.MODELS:
        raise Misuse(f"Unknown kind of file `{name}`; known: {', '.join(models.MODELS)}.")
    console.out(json.dumps(models.json_schema(name), indent=2))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(schema_command)
