"""`warpsmith report` and `stop-replay`: a campaign's pages, and the rounds that a minimum gain would save."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from warpsmith.cli.options import CampaignName, Json


def campaign_report_command(
    campaign: CampaignName = None,
    every: Annotated[
        bool, typer.Option("--all", help="Render the pages of every campaign and print none.")
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Write the report as one HTML file that needs no other, to send on.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --html: the file; by default CAMPAIGN.html in the working folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Render all pages of a campaign and the overviews from the records, and print the report."""
    from warpsmith.campaign.history import store
    from warpsmith.campaign.rounds import state
    from warpsmith.cli import console
    from warpsmith.errors import Misuse
    from warpsmith.project import find_project
    from warpsmith.reporting.rendering import last_report
    from warpsmith.reporting.rendering.last_report import REPORT

    if out and not html:
        raise Misuse("`--out` names the file of --html; add --html, or omit --out.")
    if html and (every or as_json):
        raise Misuse("`--html` writes one file of one campaign; omit --all and --json.")
    if html:
        _write_html(campaign, out)
        return
    if every:
        if campaign or as_json:
            raise Misuse("`--all` renders every campaign and prints none; omit --campaign and --json.")
        from warpsmith.reporting import pages

        changed = pages.render_all(find_project())
        console.tell(f"{len(changed)} pages changed")
        return
    chosen = store.find_campaign(find_project(), campaign)
    changed = last_report.render_report(chosen)
    current = state.read_state(chosen)
    records, final = current.records, current.final
    if as_json:
        from warpsmith.reporting.report import ReportContents

        console.out_json(ReportContents(manifest=chosen.manifest, records=tuple(records), final=final))
    else:
        from warpsmith.reporting import terminal

        terminal.print_report(console.stdout(), chosen.manifest, records, final)
    page = chosen.project.relative(chosen.folder / REPORT)
    console.tell(f"{page} ({len(changed)} pages changed)")


def _write_html(campaign: str | None, out: Path | None) -> None:
    from warpsmith import files
    from warpsmith.campaign.history import store
    from warpsmith.cli import console
    from warpsmith.errors import Misuse
    from warpsmith.project import find_project
    from warpsmith.site import build

    chosen = store.find_campaign(find_project(), campaign)
    path = (out or Path(f"{chosen.name}.html")).absolute()
    if path.is_dir():
        raise Misuse(f"{path} is a folder; name a file with --out.")
    files.write_file(path, build.campaign_report(chosen))
    console.out(console.path_from_here(path))


def stop_replay_command(
    minimum_gain: Annotated[
        float, typer.Option(min=0, max=0.99, help="Expected gain of a round below which a campaign stops.")
    ] = 0.02,
    as_json: Json = False,
) -> None:
    """Replay all recorded campaigns under a minimum gain: the rounds it saves, and the gain it loses.

    Each forecast sees only the rounds that were closed by then. The last lines try other minima, and give each
    campaign the minimum that suits all others, which no record of its own has chosen.
    """
    from warpsmith.campaign import stop_replay
    from warpsmith.campaign.history import past_rounds
    from warpsmith.cli import console
    from warpsmith.errors import MissingInput
    from warpsmith.project import find_project

    project = find_project()
    rounds = past_rounds.read_past_rounds(project)
    if not rounds:
        raise MissingInput(f"{project.devlog} has no campaign with a round after its baseline; close one first.")
    replay = stop_replay.replay_campaigns(rounds, minimum_gain)
    others = [stop_replay.replay_campaigns(rounds, minimum) for minimum in stop_replay.MINIMA]
    held_out = stop_replay.replay_held_out(others)
    if as_json:
        console.out_json(stop_replay.ReplaySummary(replay=replay, minima=tuple(others), held_out=held_out))
        return
    for line in replay.campaigns:
        stop = f"stops before round {line.stop}, {line.expected or 0:.1%} expected" if line.stop else "goes on"
        lost = f"; loses {line.lost / line.gained:.0%} of its gain" if line.lost else ""
        console.out(f"{line.campaign}: {line.saved} of {line.rounds} rounds saved, {stop}{lost}")
    console.out(f"\nAll campaigns at {minimum_gain:.1%}: {replay.text}")
    for other in others:
        console.out(f"  at {other.minimum_gain:.1%}: {other.text}")
    console.out(f"  each at the minimum that suits the others: {held_out.text}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("report")(campaign_report_command)
    app.command("stop-replay")(stop_replay_command)
