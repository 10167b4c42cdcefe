"""The command `warpsmith` as typer builds it: commands, options, and numbers of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import typer
from typer.core import TyperGroup

from tools.textlint.tree import PLUGIN

if TYPE_CHECKING:
    from typer.core import TyperCommand


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands."""

    name: str
    """Full name: `warpsmith knowledge search`."""
    options: dict[str, bool]
    """Flags; the value tells whether a value follows the flag."""
    arguments: float
    """Largest number of arguments; may be infinite."""
    commands: dict[str, Command]
    """Commands of a group by name; empty for a command."""


@cache
def read_program() -> Command:
    """Return the whole command."""
    from warpsmith.cli.main import load_app

    return _describe(PLUGIN, typer.main.get_command(load_app()))  # type: ignore[arg-type]


def _describe(name: str, command: TyperCommand | TyperGroup) -> Command:
    options, arguments = {"--help": False}, 0.0
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments += parameter.nargs if parameter.nargs > 0 else float("inf")
        else:
            options |= dict.fromkeys(
                (*parameter.opts, *parameter.secondary_opts), not getattr(parameter, "is_flag", False)
            )
    inner = command.commands if isinstance(command, TyperGroup) else {}
    commands = {key: _describe(f"{name} {key}", part) for key, part in inner.items()}  # type: ignore[arg-type]
    return Command(name, options, arguments, commands)
