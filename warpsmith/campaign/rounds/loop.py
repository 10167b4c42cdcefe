"""The loop: one table of steps. Skills, hooks and the driver follow it and hold no copy; it imports nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["PROFILE", "SELECT", "STRATEGIZE", "DESIGN", "VERIFY", "EVALUATE", "LEARN", "REPORT"]
Who = Literal["orchestrator", "profiler", "kernel-designer", "lab"]


@dataclass(frozen=True)
class LoopRow:
    """One row of the loop; the texts are filled from the state."""

    name: str
    """The step: where it has a file, `rounds/open/<name>.json`."""
    phase: Phase
    """Its phase."""
    who: Who
    """Who does it."""
    needs: str
    """What it rests on."""
    command: str
    """What finishes it; empty where a file is to be written by hand."""
    produces: str
    """What must exist afterwards."""
    baseline: bool = True
    """Whether the round that brings the first correct version has it too."""


LOOP = (
    LoopRow(
        "profile",
        "PROFILE",
        "profiler",
        "the best version, {best}",
        "warpsmith profile {best_path} --campaign {campaign}",
        "{open}/profile.json",
        baseline=False,
    ),
    LoopRow(
        "selection",
        "SELECT",
        "orchestrator",
        "the profile's bottleneck",
        'warpsmith select --language LANGUAGE --because "WHY THIS CONTROL LEVEL" --campaign {campaign}',
        "{open}/selection.json",
        baseline=False,
    ),
    LoopRow(
        "plan",
        "STRATEGIZE",
        "orchestrator",
        "the profile's opportunities and the knowledge entries on them",
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
    ),
    LoopRow(
        "outcome",
        "EVALUATE",
        "lab",
        "the verdict and the profiles before and after",
        "warpsmith evaluate --campaign {campaign}",
        "{open}/outcome.json",
    ),
    LoopRow(
        "lesson",
        "LEARN",
        "orchestrator",
        "the outcome: what the evidence teaches beyond this kernel",
        'warpsmith learn --add FILE | --refine ID --file FILE | --refute ID --because "..."'
        ' | --nothing "WHY" --campaign {campaign}',
        "{record}",
    ),
    LoopRow(
        "close",
        "LEARN",
        "lab",
        "the lesson, which stands; filing the round was interrupted",
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
    ),
    LoopRow(
        "report",
        "REPORT",
        "lab",
        "the final race of {best}",
        "warpsmith report --campaign {campaign}",
        "{folder}/report.md",
    ),
)
"""The whole loop, in order."""

LAST = ("close", "race", "report")
"""Rows that come after a round's own steps: a round that is being filed, and the campaign's end."""
