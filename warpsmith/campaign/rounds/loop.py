"""The loop as one table. Skills, hooks and the driver follow it and hold no copy; the module imports nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["PROFILE", "SELECT", "STRATEGIZE", "DESIGN", "VERIFY", "EVALUATE", "LEARN", "REPORT"]
Who = Literal["orchestrator", "profiler", "kernel-designer", "lab"]


@dataclass(frozen=True)
class LoopRow:
    """One row of the loop; its texts are filled in from the state."""

    name: str
    """Name of the row; if it writes a part of the open round, that is `rounds/open/<name>.json`."""
    phase: Phase
    """Phase of the row."""
    who: Who
    """Agent or lab that does it."""
    needs: str
    """Inputs of the row."""
    command: str
    """Command that finishes it; empty if an agent writes a file instead."""
    produces: str
    """Files that exist afterwards."""
    baseline: bool = True
    """False for a row that the baseline round skips."""
    port: bool = True
    """False for a row that a port campaign skips, because it needs a device of the target."""


LOOP = (
    LoopRow(
        "profile",
        "PROFILE",
        "profiler",
        "the best version, {best}",
        "warpsmith profile {best_path} --campaign {campaign}",
        "{open}/profile.json",
        baseline=False,
        port=False,
    ),
    LoopRow(
        "selection",
        "SELECT",
        "orchestrator",
        "{bottleneck}",
        'warpsmith select --language LANGUAGE --because "WHY THIS CONTROL LEVEL" --campaign {campaign}',
        "{open}/selection.json",
        baseline=False,
    ),
    LoopRow(
        "plan",
        "STRATEGIZE",
        "orchestrator",
        "{opportunities} and the knowledge entries on them",
        'warpsmith plan --hypothesis "..." --category CATEGORY --predict 0.2 --metric METRIC --change 15'
        " --entry ID --campaign {campaign}",
        "{open}/plan.json",
        baseline=False,
    ),
    LoopRow(
        "design",
        "DESIGN",
        "kernel-designer",
        "{design_needs}",
        "",
        "{solution_path}",
    ),
    LoopRow(
        "verdict",
        "VERIFY",
        "lab",
        "{solution_path}",
        "warpsmith judge {solution_path} --campaign {campaign}",
        "{open}/verdict.json",
    ),
    LoopRow(
        "profile_after",
        "VERIFY",
        "profiler",
        "{solution_path}, judged correct",
        "warpsmith profile {solution_path} --campaign {campaign}",
        "{open}/profile_after.json",
        port=False,
    ),
    LoopRow(
        "outcome",
        "EVALUATE",
        "lab",
        "{judged}",
        "warpsmith evaluate --campaign {campaign}",
        "{open}/outcome.json",
    ),
    LoopRow(
        "lesson",
        "LEARN",
        "orchestrator",
        "the outcome: lessons of the evidence beyond this kernel",
        'warpsmith learn --add FILE | --refine ID --file FILE | --refute ID --because "..."'
        ' | --nothing "WHY" --campaign {campaign}',
        "{record}",
    ),
    LoopRow(
        "close",
        "LEARN",
        "lab",
        "the lesson; filing the round was interrupted",
        "warpsmith resume --campaign {campaign}",
        "{record}, and {open} gone",
    ),
    LoopRow(
        "race",
        "REPORT",
        "lab",
        "a stop condition: {stop}",
        "warpsmith race --final --campaign {campaign}",
        "{folder}/final.json",
        port=False,
    ),
    LoopRow(
        "report",
        "REPORT",
        "lab",
        "{raced}",
        "warpsmith report --campaign {campaign}",
        "{folder}/report.md",
    ),
)
"""The whole loop, in order."""

LAST = ("close", "race", "report")
"""Rows after a round's own ones: completing a round that is being filed, and the campaign's end."""
