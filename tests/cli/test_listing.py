"""Lists of commands: whole clauses at 80 columns."""

from __future__ import annotations

import re

import click
import pytest
import typer

from warpsmith.cli import main as entry
from warpsmith.cli.listing import PANELS, summary


@pytest.mark.parametrize(
    ("help", "shown"),
    [
        ("Judge a version: correctness, timing, decision. In a campaign it counts.", None),
        ("LEARN: say what was taught; " + "and so on " * 5 + "at length.", "LEARN: say what was taught."),
        ("Try to fool the gate: " + "every attack " * 5 + "is refused.", "Try to fool the gate."),
        ("Race it " + "against the others " * 4 + "and wait.", None),
    ],
)  # fmt: skip
def test_a_sentence_or_its_first_clause(help: str, shown: str | None):
    assert summary(help) == (shown or help.split(". ")[0].rstrip(".") + ".")


def test_no_list_of_commands_cuts_a_line_off():
    def groups(command: click.Command) -> list[click.Command]:
        inner = getattr(command, "commands", {}).values()
        return [command, *(found for one in inner for found in groups(one))] if inner else []

    for group in groups(typer.main.get_command(entry.load_app())):
        told = group.get_help(click.Context(group, info_name="warpsmith", terminal_width=80))
        listed = told.partition("Options:")[2].splitlines()
        assert len(listed) > 1
        assert not [line for line in listed if line.endswith("...")]


def test_every_command_stands_in_one_panel_in_the_order_of_the_table():
    group = typer.main.get_command(entry.load_app())
    names = [name for panel in PANELS.values() for name in panel]
    assert sorted(names) == sorted(group.commands)
    help_text = group.get_help(click.Context(group, info_name="warpsmith", terminal_width=80))
    places = [help_text.index(f"\n{heading}:\n") for heading in PANELS]
    assert places == sorted(places)
    listed = [line.split()[0] for line in help_text[places[0] :].splitlines() if re.match(r"  \S", line)]
    assert listed == names
