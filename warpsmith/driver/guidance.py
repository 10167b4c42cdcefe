"""Guidance of a brief: entries that fit the operator, with their hit rates, and the public prior art."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class ShownRate:
    """Form of the hit rates in a brief."""

    own: str = ""
    """Beginning of the paths of the campaign's own records, whose failures are no losses elsewhere."""
    visible: Callable[[HitRate | None], HitRate | None] | None = None
    """Keeps the tries that agents may see; None: all."""

    def text(self, rate: HitRate | None) -> str:
        """Return `; ` with the hit rate and where it lost; empty if there is none."""
        rate = self.visible(rate) if self.visible else rate
        return f"; {rate.text}{_losses(rate, self.own)}" if rate else ""


def entry_line(catalog: Catalog, id: str, rate: ShownRate) -> PlannedChange:
    """Return an entry with its title, its hit rate and where it lost."""
    listed = catalog.entries.get(id) or catalog.get(id)
    title = format.plain(listed.matter.title, _TITLE)
    return PlannedChange(name=id, why=f"{title}{rate.text(listed.hit_rate)}", entry=id)


def fitting_entries(
    catalog: Catalog,
    definition: Definition,
    language: str,
    target: str,
    symptom: str,
    planned: Iterable[str],
    rate: ShownRate,
) -> Iterator[PlannedChange]:
    """Yield the entries that fit the operator and a symptom best, without the planned and the refuted ones."""
    question = [definition.op_type, *definition.name.split("_"), *symptom.split()]
    hits = catalog.search(question, kind="optimization", language=language, target=target)
    fresh = [hit for hit in hits if hit.status in ("active", "refined") and hit.id not in set(planned)]
    for hit in fresh[:ENTRIES]:
        yield entry_line(catalog, hit.id, rate)


def approach_lines(project: Project, definition: Definition) -> Iterator[str]:
    """Yield the fastest known public approaches to the operator's family, each with its pinned file."""
    for row in prior_art.find_prior_art(project, definition)[:1]:
        stale = f"; checked {row.checked}, so look again" if row.until < date.today() else ""
        for approach in row.approaches[:APPROACHES]:
            yield f"{format.plain(approach.text).rstrip('.')} ({approach.url}{stale})."


def _losses(rate: HitRate, own: str) -> str:
    lost = [
        f"{attempt.operator} on {attempt.target}"
        for attempt in rate.tries
        if not attempt.verdict.accepted and not (own and attempt.record.startswith(own))
    ]
    names = list(dict.fromkeys(lost))
    return f"; lost on {', '.join(names[-LOSSES:])}" if names else ""
