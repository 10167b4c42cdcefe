"""Experiment on knowledge: a campaign withholds half of the entries at random, so that effects can be measured.

The draw holds for the whole campaign, because an agent cannot unread an entry. Each round's record names the
entries that fit it best, those shown and those withheld.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import SystemRandom

from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import EntryDraw
from warpsmith.errors import Misuse
from warpsmith.knowledge.catalog import Catalog
from warpsmith.project import Project

FITTING = 6
"""Number of entries that fit a round best: as many as a search prints."""


def draw_withheld(project: Project, target: str) -> tuple[str, ...]:
    """Draw half of the entries that apply to a target; raises Misuse if fewer than two do."""
    ids = [hit.id for hit in Catalog.load(project).search(target=target)]
    if len(ids) < 2:
        raise Misuse(f"An experiment needs two knowledge entries for {target}; leave out `--experiment`.")
    return tuple(sorted(SystemRandom().sample(ids, len(ids) // 2)))


def load_catalog(project: Project, campaign: Campaign | None) -> Catalog:
    """Read the entries that a campaign's agents may see; all without a campaign."""
    catalog = Catalog.load(project)
    withheld = campaign.manifest.withheld if campaign else None
    return catalog.without(withheld, campaign.name) if campaign and withheld else catalog


def fitting_draw(campaign: Campaign, words: Sequence[str], language: str) -> EntryDraw | None:
    """Return the entries that fit a round's operator and bottleneck best; None without an experiment."""
    manifest = campaign.manifest
    if manifest.withheld is None:
        return None
    hits = Catalog.load(campaign.project).search(words, language=language, target=manifest.target)
    ids = [hit.id for hit in hits if hit.status != "refuted"][:FITTING]
    withheld = tuple(id for id in ids if id in manifest.withheld)
    return EntryDraw(shown=tuple(id for id in ids if id not in withheld), withheld=withheld)
