"""What `--help` says of a command in a list of commands: a whole clause, where the library would cut one off."""

from __future__ import annotations

import re

import typer

_FITS = 64
"""Characters beside the longest name of a command at 80 columns."""

_CLAUSE = re.compile(r"(?:[A-Z]+: )?.*?(?=[:;.](?:\s|$))")
"""Up to a colon, a semicolon or the end of the sentence; a phase's name before it belongs to it."""


def summarize(app: typer.Typer) -> None:
    """Give each command of the application and of its groups a line for the list."""
    for command in app.registered_commands:
        command.short_help = summary((command.callback and command.callback.__doc__) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            summarize(group.typer_instance)


def summary(help: str) -> str:
    """The first sentence where it fits, else its first clause; what is longer still goes on in the next line."""
    text = " ".join(help.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", text)[0]
    clause = _CLAUSE.match(sentence)
    return sentence if len(sentence) <= _FITS or clause is None else f"{clause[0]}."
