"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

CampaignName = Annotated[
    str | None,
    typer.Option(
        "--campaign", help="Name of the campaign; by default $WARPSMITH_CAMPAIGN, else the only unfinished one."
    ),
]

Target = Annotated[
    str | None, typer.Option(help="Device kind: the id of a hardware page; by default this machine's.")
]
