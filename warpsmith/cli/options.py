"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

CampaignName = Annotated[
    str | None,
    typer.Option(
        "--campaign",
        help="Campaign, or operator with one open campaign; by default $WARPSMITH_CAMPAIGN, else the only"
        " unfinished one, or the only one of these that was started in this checkout.",
    ),
]

Target = Annotated[
    str | None, typer.Option(help="Device kind: the id of a hardware page; by default this machine's.")
]

Context = Annotated[
    str | None,
    typer.Option(help="Machine that measures, by its name in `warpsmith context list`; by default this one."),
]

MinimumGain = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.99,
        help="Expected gain of another round below which the campaign stops: 0.02 is 2 %. By default 0.02 where"
        " rounds are paid for and no --max-iterations is given; 0 never stops.",
    ),
]

FromScratch = Annotated[
    bool,
    typer.Option(
        "--from-scratch",
        help="Begin with a new version, and hide from agents what earlier campaigns on the operator left.",
    ),
]
Experiment = Annotated[
    bool,
    typer.Option(
        "--experiment",
        help="Withhold half of the knowledge, drawn at random, from agents, to measure what entries are worth.",
    ),
]
Port = Annotated[
    bool,
    typer.Option(
        "--port",
        help="Open a port campaign for a target that is not here: versions are interpreted and compiled for it,"
        " never timed. AMD's targets need no --port.",
    ),
]
MinimumGainPer = Annotated[
    Literal["round", "minute", "usd"],
    typer.Option(help="Cost that --minimum-gain is asked for: a round, or a minute or dollar of it."),
]
