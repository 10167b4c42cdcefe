"""List of commands in `--help`: panels in the order of the work, and one whole clause for each command."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperGroup

PANELS: dict[str, dict[str, str]] = {
    "Start": {
        "doctor": "lab.doctor", "context": "context", "new": "campaign.new", "check": "campaign.new",
        "start": "campaign.rounds", "optimize": "campaign.optimize", "demo": "campaign.optimize",
    },
    "Loop": {
        "next": "campaign.rounds", "status": "campaign.rounds", "profile": "profiling.profile",
        "select": "campaign.rounds", "plan": "campaign.rounds", "brief": "campaign.answer", "judge": "lab.judge",
        "evaluate": "campaign.rounds", "learn": "campaign.rounds", "resume": "campaign.rounds",
        "restart": "campaign.rounds", "strike": "campaign.rounds", "amend": "campaign.rounds",
        "abandon": "campaign.rounds",
    },
    "Lab": {
        "assembly": "profiling.assembly", "try": "lab.workbench", "tune": "lab.tune", "race": "lab.race",
        "ranks": "lab.ranks", "map": "lab.performance_map", "port": "lab.port", "ceiling": "lab.hardware",
        "aa": "lab.hardware", "redteam": "lab.redteam", "uplift": "uplift",
    },
    "Results": {
        "report": "campaign.report", "site": "site", "use": "campaign.use", "export": "campaign.new",
        "evidence": "lab.evidence", "stop-replay": "campaign.report",
    },
    "Programs and repositories": {
        "program": "program.analyze program.trial program.extract program.regions program.autopilot",
        "graph": "program.graph",
        "repo": "repo", "backup": "backup", "backups": "backup", "restore": "backup", "keep": "backup",
    },
    "Reference": {"knowledge": "knowledge", "hardware": "lab.hardware", "schema": "schema"},
    "Agents": {"route": "campaign.route", "answer": "campaign.answer", "hook": "hook"},
}  # fmt: skip
"""Heading to the commands and groups below it, each with the modules that register it; every command stands in one
panel. A command imports its own modules alone."""

_SHORT = 64
"""Characters next to the longest name of a command at 80 columns."""

_LONGEST = 400
"""Characters of a line of help: more than any has, so that none is cut off."""

_CLAUSE = re.compile(r"(?:[A-Z]+: )?.*?(?=[:;.](?:\s|$))")
"""Text up to a colon, a semicolon or the end of the sentence; includes the name of a phase before it."""


class PanelGroup(TyperGroup):
    """Command line whose help lists the commands in panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own classes
        """Write one section for each panel, all with the same width of the names."""
        width = max(map(len, self.commands), default=0)
        for heading, names in PANELS.items():
            commands = [(name, self.commands[name]) for name in names if name in self.commands]
            if rows := [(name.ljust(width), command.get_short_help_str(_LONGEST)) for name, command in commands]:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def set_summaries(app: typer.Typer) -> None:
    """Give each command of the application and of its groups its line for the list."""
    for command in app.registered_commands:
        command.short_help = summary((command.callback and command.callback.__doc__) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            set_summaries(group.typer_instance)


def summary(text: str) -> str:
    """Return the first sentence of a help text if it is short, else its first clause."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", paragraph)[0]
    clause = _CLAUSE.match(sentence)
    return sentence if len(sentence) <= _SHORT or clause is None else f"{clause[0]}."
