"""`warpsmith report`: render a campaign's pages, and show its report."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    campaign: Annotated[str | None, typer.Option(help="Its name; by default the only unfinished one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Render the pages of every campaign; show none.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The manifest and the records instead of tables.")] = False,
) -> None:
    """Render every page of a campaign and the overviews from the records, and show the report."""
    from warpsmith import project
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.cli import console
    from warpsmith.errors import Misuse
    from warpsmith.reporting import pages, terminal
    from warpsmith.reporting.report import Contents

    if every:
        if campaign or json:
            raise Misuse("`--all` renders every campaign and shows none; leave out --campaign and --json.")
        changed = pages.render_all(project.find())
        console.tell(f"{len(changed)} pages changed")
        return
    found = store.find(project.find(), campaign)
    changed = pages.render(found)
    records, final = found.records(), state.read(found).final
    if json:
        console.out_json(Contents(manifest=found.manifest, records=tuple(records), final=final))
    else:
        terminal.print_report(console.stdout(), found.manifest, records, final)
    told = found.project.relative(found.folder / pages.REPORT)
    console.tell(f"{told} ({len(changed)} pages changed)")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)
