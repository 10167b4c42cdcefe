"""Last report: a report that changed no page is not rendered again while every file of the project stays."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from warpsmith import derived_rows
from warpsmith.campaign.history.store import Campaign

REPORT = "report.md"
"""File name of the report in the campaign's folder."""

_KIND = "report"


def render_report(campaign: Campaign) -> list[Path]:
    """Write the pages of a campaign that changed, and return them; raises as `pages.render_campaign`.

    If no file of the project has changed since that changed no page, nothing is read but the names and times of
    files.
    """
    project = campaign.project
    state = derived_rows.tree_state((project.devlog, project.kernels, *project.knowledge_layers), _drawn())
    key = str(campaign.folder)
    if derived_rows.read_rows(project.root, _KIND).get(key, ("", ""))[0] == state.sha256:
        return []
    from warpsmith.reporting import pages  # takes longer to import than the rest of the command

    changed = pages.render_campaign(campaign)
    if not changed and state.settled:
        derived_rows.write_rows(project.root, _KIND, {key: (state.sha256, "")})
    return changed


def _drawn() -> str:
    """Return a text that changes when plots can or cannot be drawn on this machine any more."""
    return str(find_spec("matplotlib") is not None)
