"""Write docs/commands.md from the command line; `python -m tools.commands_page --check` fails if it is stale."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from warpsmith.cli.listing import PANELS
from warpsmith.cli.main import load_app

BAR = "\\|"
"""Vertical bar inside a cell of a Markdown table."""

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

HEAD = """\
# Commands

Every command prints its own help with `-h`, and `warpsmith --install-completion` completes commands in your shell.
Data goes to stdout, messages for people go to stderr.
[faults.md](faults.md) says what to do about an error. Exit codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | the version or the change is wrong or slower |
| 2 | misuse, or another process holds the campaign |
| 3 | a file does not exist yet, or a record is corrupt |
| 4 | the machine lacks something, or it failed |
| 5 | a time limit was exceeded |
| 6 | the gain is within the noise |
| 7 | the agents stopped |
| 130, 143, 129 | Ctrl-C, SIGTERM or SIGHUP ended it |

`python -m tools.commands_page` generates this page from the command line itself.
"""


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it; returns the exit code."""
    page = render_page()
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
            return 0
        sys.stderr.write("docs/commands.md is stale; run `python -m tools.commands_page`.\n")
        return 1
    if arguments:
        sys.stderr.write("usage: python -m tools.commands_page [--check]\n")
        return 2
    PAGE.write_text(page, encoding="utf-8")
    return 0


def render_page() -> str:
    """Render the page as Markdown: one section for each panel of `warpsmith --help`."""
    root: Any = typer.main.get_command(load_app())
    lines = [HEAD]
    for heading, names in PANELS.items():
        lines.append(f"## {heading}\n")
        for name in names:
            lines.extend(_describe(f"warpsmith {name}", root.commands[name]))
    return "\n".join(lines)


def _describe(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - typer's classes are private
    """Yield the lines of a command, and of the commands of a group."""
    yield f"### `{name}`\n"
    yield f"{_help_text(command)}\n"
    if commands := getattr(command, "commands", None):
        for inner, subcommand in commands.items():
            yield from _describe(f"{name} {inner}", subcommand)
        return
    context = typer.Context(command, info_name=name)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{term.replace('|', BAR)}` | {_escape(text)} |" for term, text in filter(None, records)]
    if rows:
        yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows, ""])


def _help_text(command: Any) -> str:  # noqa: ANN401 - typer's classes are private
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(_escape(paragraph) for paragraph in paragraphs)


def _escape(text: str) -> str:
    """Escape a help text for a table: pipes everywhere, angle brackets outside of code spans."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(part if index % 2 else part.replace("<", "\\<") for index, part in enumerate(parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
