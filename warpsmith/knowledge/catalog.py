"""Catalog of the entries of all layers by id, and search over them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from warpsmith import languages
from warpsmith.core.base import Model
from warpsmith.core.knowledge import HitRate, Status, SymptomRow
from warpsmith.core.metrics import METRICS
from warpsmith.errors import Misuse
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import hit_rates
from warpsmith.knowledge.entry import Entry, ListedEntry
from warpsmith.knowledge.search import ranking, symptoms, synonyms
from warpsmith.knowledge.search.ranking import Concept, Relevance
from warpsmith.project import Project

Kind = Literal["optimization", "anti-pattern"]

ANTI_PATTERN = 0.9
"""Weight of an anti-pattern's relevance: of two entries that fit alike, the one to try comes first."""

SYMPTOM_STEP, SYMPTOM_LEAST = 0.2, 0.2
"""Shares of the best score that a symptom with all words of a search adds to its entries: 1 for the first
one, less by a step for each after it, and this much at least."""

FITTING, TAIL = 0.5, 0.4
"""Least share of a search's weight that an entry which fits holds, and least share of the best score."""

NEAREST = 3
"""Number of the nearest entries that are named if none fits."""

NO_RELEVANCE = Relevance(score=0.0, coverage=0.0, matched=())
"""Relevance of an entry that no word of the search names."""

_LAST = ("demoted", "refuted")
"""Statuses that are ranked after all others, in this order."""


class Hit(Model):
    """An entry that matches a search."""

    id: str
    """Id of the entry."""
    title: str
    """Title: what to do, or what not to do."""
    kind: Kind
    """Optimization or anti-pattern."""
    status: Status
    """Status; `demoted` entries are ranked after all others, `refuted` ones last."""
    when: str
    """First line of `When to apply`."""
    path: str
    """Path of its file."""
    score: float
    """Relevance: BM25 over words and synonyms, and more if a symptom in the search leads to it."""
    coverage: float
    """Share of the search's weight that its words have, from 0 to 1; rare words weigh more."""
    matched: tuple[str, ...]
    """Words of the search that it holds, themselves or by a synonym."""
    hit_rate: HitRate | None = None
    """Hit rate over the project's rounds; null if no round applied it."""
    symptom: str | None = None
    """Title of the symptom in the search that leads to it; null if only words matched."""


class Hits(Model):
    """Results of a search, best first."""

    hits: tuple[Hit, ...]
    """One hit for each entry that fits."""
    nearest: tuple[str, ...] = ()
    """Ids of the nearest entries if none fits."""


@dataclass(frozen=True)
class Catalog:
    """All entries of both layers."""

    project: Project
    """Project whose layers were read."""
    entries: dict[str, ListedEntry]
    """Entries by id, sorted; the project's own entry hides a shipped one of the same id."""
    skipped: tuple[str, ...] = ()
    """Reason for each page that is left out because it is no entry; `warpsmith knowledge check` reports it."""
    withheld: frozenset[str] = frozenset()
    """Ids of the entries that a campaign withholds from its agents; they are not among the entries."""
    withholder: str = ""
    """Name of that campaign."""

    @classmethod
    def load(cls, project: Project, *, rated: bool = True) -> Catalog:
        """Read every entry's front matter, and if `rated` compute its hit rate over the project's rounds."""
        rates = hit_rates.hit_rates_by_entry(project) if rated else {}
        merged: dict[str, ListedEntry] = {}
        skipped: list[str] = []
        for layer in reversed(project.knowledge_layers):
            listed, problems = entries.list_entries(project, layer, rates)
            merged |= {entry.id: entry for entry in listed}
            skipped += problems
        return cls(project, dict(sorted(merged.items())), tuple(skipped))

    def without(self, ids: Iterable[str], withholder: str) -> Catalog:
        """Return the catalog without the entries that a campaign withholds."""
        withheld = frozenset(ids)
        entries = {id: entry for id, entry in self.entries.items() if id not in withheld}
        return replace(self, entries=entries, withheld=withheld, withholder=withholder)

    def require(self, ids: Iterable[str]) -> None:
        """Raise Misuse for an id that no visible entry has."""
        for id in ids:
            self.get(id)

    def get(self, id: str) -> Entry:
        """Read the entry with an id; raise Misuse naming the nearest ids, or BadEntry if it does not parse."""
        if id in self.withheld:
            raise Misuse(
                f"`{id}` is withheld at random from {self.withholder}, to measure its worth; work without it."
            )
        if id in self.entries:
            entry = entries.read_entry(self.project, self.project.root / self.entries[id].path)
            return entry.model_copy(update={"hit_rate": self.entries[id].hit_rate})
        similar = difflib.get_close_matches(id, self.entries, n=3, cutoff=0.4)
        hint = f"similar: {', '.join(similar)}" if similar else "look with `warpsmith knowledge search`"
        raise Misuse(f"There is no knowledge entry `{id}`; {hint}.")

    def search(
        self,
        words: Sequence[str] = (),
        *,
        kind: Kind | None = None,
        language: str | None = None,
        target: str | None = None,
        metric: str | None = None,
    ) -> list[Hit]:
        """Return the entries that hold a word of the search, or all entries if no word is given; best first.

        Words count by BM25, with their synonyms. Entries of a symptom in the search gain by the share of the
        search that names it. Demoted and refuted entries come last. `language` keeps the shared entries, `target`
        those for its kind of device.

        Raises:
            Misuse: an unknown language, metric or target.
            BadEntry: a table of symptoms or synonyms does not parse.
            MachineLacks: Python's SQLite has no full-text search.
        """
        if language is not None:
            self._check_language(language)
        targets = {target, _kind(self.project, target)} if target else set()
        candidates = [
            entry
            for entry in self.entries.values()
            if (kind is None or entry.matter.kind == kind)
            and (language is None or entry.matter.language in (None, language))
            and (not targets or targets & set(entry.matter.applies_to.targets))
            and (metric is None or _checked_metric(metric) in entry.matter.metrics)
        ]
        question = ranking.parse_question(words, synonyms.merge_synonyms(self.project))
        if not question:
            return sorted((_hit(entry, NO_RELEVANCE, None) for entry in candidates), key=_rank)
        rows = symptoms.merge_symptom_tables(self.project)
        relevant = self._relevance(question, rows)
        best = max((relevance.score for relevance in relevant.values()), default=1.0)
        led = _symptom_gains(" ".join(words), question, rows)
        hits = []
        for entry in candidates:
            gain, share, title = led.get(entry.id, (0.0, 0.0, None))
            relevance = relevant.get(entry.id, NO_RELEVANCE)
            if relevance.matched or title:
                score = relevance.score + gain * best
                weighted = score * (ANTI_PATTERN if entry.matter.kind == "anti-pattern" else 1.0)
                whole = relevance._replace(score=weighted, coverage=max(relevance.coverage, share))
                hits.append(_hit(entry, whole, title))
        return sorted(hits, key=_rank)

    def _relevance(self, question: Sequence[Concept], rows: Sequence[SymptomRow]) -> dict[str, Relevance]:
        names = {id: [row for row in rows if id in row.entries] for id in self.entries}
        phrases = {id: " ".join(" ".join((row.title, *row.also)) for row in led) for id, led in names.items()}
        index = ranking.WordIndex.build(self.entries.values(), phrases)
        with closing(index.connection):
            return index.rank(question)

    def _check_language(self, language: str) -> None:
        allowed = {*languages.names(), *filter(None, (entry.matter.language for entry in self.entries.values()))}
        if language not in allowed:
            raise Misuse(f"unknown language `{language}`; known: {', '.join(sorted(allowed))}.")


def fitting_hits(hits: Sequence[Hit], searched: bool) -> list[Hit]:
    """Return the hits that have enough of a search's words and are not far behind the best; all without words."""
    if not searched:
        return list(hits)
    fitting = [hit for hit in hits if hit.coverage >= FITTING]
    best = max((hit.score for hit in fitting), default=0.0)
    return [hit for hit in fitting if hit.score >= TAIL * best]


def _symptom_gains(
    text: str, question: Sequence[Concept], rows: Sequence[SymptomRow]
) -> dict[str, tuple[float, float, str]]:
    """Return what a text's symptoms add to the entries that they lead to, their share of it, and title."""
    gains: dict[str, tuple[float, float, str]] = {}
    count = len({word for concept in question for word in concept.words})
    for row, matching in symptoms.match_symptoms(rows, text):
        share = min(1.0, len(matching) / count)
        for position, id in enumerate(row.entries):
            gains.setdefault(id, (share * max(1 - SYMPTOM_STEP * position, SYMPTOM_LEAST), share, row.title))
    return gains


def _kind(project: Project, target: str) -> str:
    if target in ("gpu", "cpu"):
        return target
    from warpsmith.knowledge import hardware

    targets = hardware.read_targets(project)
    if target not in targets:
        raise Misuse(f"unknown target `{target}`; known: gpu, {', '.join(targets)}.")
    return targets[target].kind


def _checked_metric(metric: str) -> str:
    if metric not in METRICS:
        raise Misuse(f"unknown metric `{metric}`; known: {', '.join(METRICS)}.")
    return metric


def _rank(hit: Hit) -> tuple[int, float, str]:
    return _LAST.index(hit.status) + 1 if hit.status in _LAST else 0, -hit.score, hit.id


def _hit(entry: ListedEntry, relevance: Relevance, symptom: str | None) -> Hit:
    return Hit(
        id=entry.id,
        title=entry.matter.title,
        kind=entry.matter.kind,
        status=entry.status,
        when=entry.when,
        path=entry.path,
        score=round(relevance.score, 2),
        coverage=round(relevance.coverage, 2),
        matched=relevance.matched,
        hit_rate=entry.hit_rate,
        symptom=symptom,
    )
