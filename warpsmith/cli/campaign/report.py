"""`warpsmith report`: render a campaign's pages and print its report."""

from __future__ import annotations

from typing import Annotated

import typer

from warpsmith.cli.options import CampaignName, Json


def campaign_report_command(
    campaign: CampaignName = None,
    every: Annotated[
        bool, typer.Option("--all", help="Render the pages of every campaign and print none.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Render all pages of a campaign and the overviews from the records, and print the report."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.cli import console
    from warpsmith.errors import Misuse
    from warpsmith.project import find_project
    from warpsmith.reporting import pages, terminal
    from warpsmith.reporting.report import ReportContents

    if every:
        if campaign or as_json:
            raise Misuse("`--all` renders every campaign and prints none; omit --campaign and --json.")
        changed = pages.render_all(find_project())
        console.tell(f"{len(changed)} pages changed")
        return
    chosen = store.find_campaign(find_project(), campaign)
    changed = pages.render_campaign(chosen)
    records, final = chosen.records(), state.read_state(chosen).final
    if as_json:
        console.out_json(ReportContents(manifest=chosen.manifest, records=tuple(records), final=final))
    else:
        terminal.print_report(console.stdout(), chosen.manifest, records, final)
    page = chosen.project.relative(chosen.folder / pages.REPORT)
    console.tell(f"{page} ({len(changed)} pages changed)")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(campaign_report_command)
