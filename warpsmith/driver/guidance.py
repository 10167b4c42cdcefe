"""Guidance of a brief: entries that fit the operator, with their hit rates, and the public prior art."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date

from warpsmith.core.definition import Definition
from warpsmith.core.knowledge import HitRate
from warpsmith.driver.task import PlannedChange
from warpsmith.knowledge import prior_art
from warpsmith.knowledge.catalog import Catalog
from warpsmith.project import Project
from warpsmith.reporting import format

ENTRIES, APPROACHES, LOSSES = 3, 5, 3
"""Entries that fit besides the planned ones, approaches of prior art, and losses of an entry that are named."""

_TITLE = 160


def entry_line(catalog: Catalog, id: str, campaign: str) -> PlannedChange:
    """Return an entry with its title, its hit rate and where it lost.

    `campaign` is the path of the open campaign's folder, whose own rounds are not counted as losses: a brief names
    them elsewhere, unless they are masked.
    """
    listed = catalog.entries.get(id) or catalog.get(id)
    title = format.plain(listed.matter.title, _TITLE)
    rate = f"; {listed.hit_rate.text}{_losses(listed.hit_rate, campaign)}" if listed.hit_rate else ""
    return PlannedChange(name=id, why=f"{title}{rate}", entry=id)


def fitting_entries(
    catalog: Catalog,
    definition: Definition,
    language: str,
    target: str,
    symptom: str,
    planned: Iterable[str],
    campaign: str,
) -> Iterator[PlannedChange]:
    """Yield the entries that fit the operator and a symptom best, without the planned and the refuted ones."""
    question = [definition.op_type, *definition.name.split("_"), *symptom.split()]
    hits = catalog.search(question, kind="optimization", language=language, target=target)
    fresh = [hit for hit in hits if hit.status in ("active", "refined") and hit.id not in set(planned)]
    for hit in fresh[:ENTRIES]:
        yield entry_line(catalog, hit.id, campaign)


def approach_lines(project: Project, definition: Definition) -> Iterator[str]:
    """Yield the fastest known public approaches to the operator's family, each with its pinned file."""
    for row in prior_art.find_prior_art(project, definition)[:1]:
        stale = f"; checked {row.checked}, so look again" if row.until < date.today() else ""
        for approach in row.approaches[:APPROACHES]:
            yield f"{format.plain(approach.text).rstrip('.')} ({approach.url}{stale})."


def _losses(rate: HitRate, campaign: str) -> str:
    lost = [
        f"{attempt.operator} on {attempt.target}"
        for attempt in rate.tries
        if not attempt.verdict.accepted and not attempt.record.startswith(f"{campaign}/")
    ]
    names = list(dict.fromkeys(lost))
    return f"; lost on {', '.join(names[-LOSSES:])}" if names else ""
