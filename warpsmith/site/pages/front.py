"""The front page: what the site is, and the results as one picture; and the list of campaigns."""

from __future__ import annotations

import tomllib

from warpsmith.core.evaluation import COMPILED
from warpsmith.reporting import facts, overview
from warpsmith.site import addresses
from warpsmith.site.charts.bars import Bar, BarGroup, draw_bars
from warpsmith.site.contents import CampaignHistory
from warpsmith.site.context import SiteContext
from warpsmith.site.page import SitePage, build_page
from warpsmith.site.pages.programs import ProgramLine


def front_page(context: SiteContext) -> SitePage:
    """Return the front page."""
    leading = list_leading(context)
    groups = [_group(context, history) for history in leading]
    operators_with_results = {history.operator for history in leading}
    return build_page(
        "front",
        addresses.FRONT,
        title=project_title(context),
        rows=[(history, group) for history, group in zip(leading, groups, strict=True)],
        chart=draw_bars(groups, ""),
        share={history.name: _share(history) for history in leading},
        without=[op for op in context.contents.operators if op not in operators_with_results],
        operator_address=addresses.operator_address,
        campaign_address=addresses.campaign_address,
        entries=len(context.catalog.entries),
        rounds=sum(len(history.stored) for history in context.contents.campaigns),
        rolled_back=sum(len(facts.rolled_back_rounds(history.rounds)) for history in context.contents.campaigns),
        campaigns=context.contents.campaigns,
        problems=context.contents.problems,
    )


def campaigns_page(context: SiteContext, programs: list[ProgramLine]) -> SitePage:
    """Return the list of campaigns, programs and kernels in other repositories."""
    return build_page(
        "campaigns",
        addresses.CAMPAIGNS,
        title="Campaigns",
        histories=context.contents.campaigns,
        share={history.name: _share(history) for history in context.contents.campaigns},
        means={
            history.name: context.contents.quote_mean(history, history.row.compiled)
            for history in context.contents.campaigns
        },
        programs=programs,
        campaign_address=addresses.campaign_address,
    )


def list_leading(context: SiteContext) -> list[CampaignHistory]:
    """Return the campaign of the best version of each operator and target, as the devlog's overview has them."""
    contents = context.contents
    best = {key: version.sha256 for key, version in contents.best.items()}
    by_row = {id(history.row): history for history in contents.campaigns}
    rows = overview.leading_rows((history.row for history in contents.campaigns), best)
    return [by_row[id(row)] for row in rows]


def project_title(context: SiteContext) -> str:
    """Return the name of the project: that in its `pyproject.toml`, else that of its folder."""
    root = context.project.root
    try:
        name = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return root.name
    return str(name)


def _group(context: SiteContext, history: CampaignHistory) -> BarGroup:
    row, contents = history.row, context.contents
    bars = []
    if compiled := contents.quote_mean(history, row.compiled):
        bars.append(Bar("compiled", COMPILED, compiled, tuple(row.notes(row.compiled))))
    peer = row.other_peer
    if peer and (quote := contents.quote_mean(history, peer)):
        bars.append(Bar("peer", facts.side_name(peer.against), quote, tuple(row.notes(peer))))
    version = row.best.solution if row.best else "no version"
    detail = f"{version}, {row.manifest.target}{', by energy' if row.manifest.objective == 'energy' else ''}"
    return BarGroup(history.operator, detail, addresses.operator_address(history.operator), bars)


def _share(history: CampaignHistory) -> object:
    reported = history.reported
    return reported[1].derive(history.row.share, "mean_ceiling_share") if reported else None
