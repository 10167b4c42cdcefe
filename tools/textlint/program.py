"""The command `warpsmith` as typer builds it: its commands, their options, how many arguments they take."""

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
    """A command, or a group of them."""

    name: str
    """As it is called: `warpsmith knowledge search`."""
    options: dict[str, bool]
    """Each flag, and whether a value follows it."""
    arguments: float
    """How many it takes at most; may be infinite."""
    commands: dict[str, Command]
    """Those of a group by name; empty for a command."""


@cache
def program() -> Command:
    """The whole command."""
    from warpsmith.cli.main import app

    return _read(PLUGIN, typer.main.get_command(app))  # type: ignore[arg-type]


def _read(name: str, found: TyperCommand | TyperGroup) -> Command:
    options, arguments = {"--help": False}, 0.0
    for one in found.params:
        if one.param_type_name == "argument":
            arguments += one.nargs if one.nargs > 0 else float("inf")
        else:
            options |= dict.fromkeys((*one.opts, *one.secondary_opts), not getattr(one, "is_flag", False))
    inner = found.commands if isinstance(found, TyperGroup) else {}
    return Command(name, options, arguments, {key: _read(f"{name} {key}", one) for key, one in inner.items()})  # type: ignore[arg-type]
