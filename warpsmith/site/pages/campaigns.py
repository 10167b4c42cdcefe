"""A campaign's page: its report as `warpsmith report` renders it, with charts and every round in full."""

from __future__ import annotations

from warpsmith.campaign.history.records import StoredRound
from warpsmith.core.evidence import Rerun
from warpsmith.reporting import facts, pages, report
from warpsmith.site import addresses
from warpsmith.site.addresses import SiteMap
from warpsmith.site.charts.history import SHAPES, HistoryPoint, draw_history
from warpsmith.site.contents import CampaignHistory
from warpsmith.site.context import SiteContext
from warpsmith.site.markdown import render_markdown
from warpsmith.site.markup import Html
from warpsmith.site.page import SearchText, SitePage, build_page
from warpsmith.site.templating import fill_page

_FIRST_SECTION = "## Result\n"
"""Heading of the report before which the chart stands."""


def campaign_page(context: SiteContext, history: CampaignHistory) -> SitePage:
    """Return the page of a campaign."""
    address = addresses.campaign_address(history.name)
    values = campaign_values(context.addresses, history, address)
    hypotheses = " ".join(record.plan.hypothesis for record in history.rounds)
    text = SearchText(
        history.name,
        address,
        "campaign",
        f"{history.operator} on {history.row.manifest.target}, {len(history.stored)} rounds",
        f"campaign {history.operator} {history.row.manifest.target} {history.row.manifest.target_language}",
        "",
        hypotheses,
    )
    return build_page(
        "campaign", address, title=history.name, section=addresses.CAMPAIGNS, found_by=(text,), **values
    )


def campaign_values(where: SiteMap, history: CampaignHistory, address: str) -> dict[str, object]:
    """Return the values of a campaign's template."""
    links = report.ReportLinks(where.project.relative(history.campaign.folder), _entry_files(where, history))
    reported = history.reported
    text = report.report_page(
        history.row.manifest,
        history.rounds,
        links,
        history.row.final,
        history.reruns,
        history.closure,
        history.reads,
    )
    around = where.surroundings(address, history.campaign.folder, reported[1] if reported else None)
    head, _, body = _without_notice(text).partition(_FIRST_SECTION)
    languages = sorted({record.evaluation.language for record in history.rounds})
    points = [
        HistoryPoint(
            stored.record,
            history.citations[stored.number],
            addresses.round_anchor(history.name, stored.number),
            languages.index(stored.record.evaluation.language),
        )
        for stored in history.stored
    ]
    return {
        "history": history,
        "head": render_markdown(head, around),
        "report": render_markdown(f"{_FIRST_SECTION}{body}", around),
        "chart": draw_history(points) if points else Html(""),
        "shapes": SHAPES,
        "languages": list(enumerate(languages)),
        "rounds": [_round(where, history, stored, address) for stored in history.stored],
        "operator_address": addresses.operator_address(history.operator),
        "problems": history.problems,
    }


def campaign_file(where: SiteMap, history: CampaignHistory, style: str, script: str) -> str:
    """Return the page of a campaign as one file that needs no other.

    Args:
        where: map of the site, of which the page is no part.
        history: the campaign.
        style: the site's style sheet.
        script: the site's script.
    """
    title = f"{history.operator} on {history.row.manifest.target}: {history.name}"
    return fill_page(
        "report",
        title=title,
        style=Html(style),
        script=Html(script),
        **campaign_values(where, history, addresses.FRONT),
    )


def _round(where: SiteMap, history: CampaignHistory, stored: StoredRound, address: str) -> dict[str, object]:
    citation = history.citations[stored.number]
    rerun: Rerun | None = history.reruns.get(stored.folder.name)
    text = report.round_page(stored.record, rerun)
    anchor = addresses.round_anchor(history.name, stored.number)
    around = where.surroundings(address, stored.folder, citation, raise_headings=1, prefix=f"{anchor}-")
    return {
        "anchor": anchor,
        "record": stored.record,
        "citation": citation,
        "gain": citation.quote(stored.record, "outcome", "gain"),
        "verdict": facts.verdict_text(stored.record),
        "html": render_markdown(_without_title(_without_notice(text)), around),
    }


def _entry_files(where: SiteMap, history: CampaignHistory) -> dict[str, str]:
    return pages.entry_files(where.project, history.rounds)


def _without_notice(text: str) -> str:
    """Return a page without the comment that says how it was rendered."""
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line and not line.startswith("<!--")), 0)
    return "\n".join(lines[start:])


def _without_title(text: str) -> str:
    first, _, rest = text.partition("\n")
    return rest if first.startswith("# ") else text
