"""Catalog of the entries of all layers by id, and search over them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from warpsmith import languages
from warpsmith.core.base import Model
from warpsmith.core.knowledge import HitRate, Status
from warpsmith.core.metrics import METRICS
from warpsmith.errors import BadEntry, Misuse
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import hit_rates, symptoms
from warpsmith.knowledge.entry import Entry, ListedEntry
from warpsmith.knowledge.words import normalize_text, significant_words
from warpsmith.project import Project

Kind = Literal["optimization", "anti-pattern"]

WEIGHTS = {"id and title": 5, "metrics": 4, "scope": 3, "When to apply": 2, "other sections": 1}
"""Weight of a word by the part of an entry that holds it; the weights of several parts add up."""

_LAST = ("demoted", "refuted")
"""Statuses that are ranked after all others, in this order."""

_HEADING = re.compile(r"^##? .*$", re.MULTILINE)


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
    score: int
    """Sum of `WEIGHTS` over the words and the parts that hold them."""
    matched: tuple[str, ...]
    """Words of the search that it holds."""
    hit_rate: HitRate | None = None
    """Hit rate over the project's rounds; null if no round applied it."""
    symptom: str | None = None
    """Title of the symptom in the search that leads to it; null if only words matched."""


class Hits(Model):
    """Results of a search, best first."""

    hits: tuple[Hit, ...]
    """One hit for each entry."""


@dataclass(frozen=True)
class Catalog:
    """All entries of both layers."""

    project: Project
    """Project whose layers were read."""
    entries: dict[str, ListedEntry]
    """Entries by id, sorted; the project's own entry hides a shipped one of the same id."""

    @classmethod
    def load(cls, project: Project) -> Catalog:
        """Read every entry's front matter, and compute its hit rate over the project's rounds.

        Raises:
            BadEntry: an entry does not parse, or one layer has two entries of one id.
        """
        rates = hit_rates.hit_rates_by_entry(project)
        merged: dict[str, ListedEntry] = {}
        for layer in reversed(project.knowledge_layers):
            by_id: dict[str, ListedEntry] = {}
            for path in entries.entry_paths(layer):
                entry = entries.read_listed_entry(project, path, rates)
                if twin := by_id.get(entry.id):
                    raise BadEntry(f"{entry.path} has the id of {twin.path}; rename one of them.")
                by_id[entry.id] = entry
            merged |= by_id
        return cls(project, dict(sorted(merged.items())))

    def get(self, id: str) -> Entry:
        """Read the entry with an id; raise Misuse naming the nearest ids, or BadEntry if it does not parse."""
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
        """Return the entries that hold at least one of the words, or all entries if no word is given.

        If the words match a symptom, its entries come first, in
        its order. Then entries are ranked by number of words,
        score and id; demoted and refuted ones come last. A word also matches longer words that begin with it, and
        `bank-conflicts` is a phrase.
        `language` keeps the shared entries, `target` those for its kind of device.

        Raises:
            Misuse: an unknown language, metric or target.
            BadEntry: a symptom table does not parse.
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
        symptom_titles = self._entries_of_symptoms(" ".join(words))
        phrases = _phrases(words)
        hits = [_hit(entry, phrases, symptom_titles.get(entry.id)) for entry in candidates]
        matching = [hit for hit in hits if hit.matched or hit.symptom or not phrases]
        positions = {id: position for position, id in enumerate(symptom_titles)}

        def rank(hit: Hit) -> tuple[int, int, int, int, str]:
            last = _LAST.index(hit.status) + 1 if hit.status in _LAST else 0
            return last, positions.get(hit.id, len(symptom_titles)), -len(hit.matched), -hit.score, hit.id

        return sorted(matching, key=rank)

    def _check_language(self, language: str) -> None:
        allowed = {*languages.names(), *filter(None, (entry.matter.language for entry in self.entries.values()))}
        if language not in allowed:
            raise Misuse(f"unknown language `{language}`; known: {', '.join(sorted(allowed))}.")

    def _entries_of_symptoms(self, text: str) -> dict[str, str]:
        """Return the entries that the symptoms in a text lead to, in their order, with the symptom's title."""
        table = symptoms.merge_symptom_tables(self.project) if text else ()
        titles: dict[str, str] = {}
        for symptom in symptoms.recognize_symptoms(table, text):
            titles |= {id: symptom.title for id in symptom.entries if id not in titles}
        return titles


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


def _phrases(words: Sequence[str]) -> dict[str, str]:
    """Return the phrase to search for by word; stop words count only if there are no others."""
    phrases = {word: f" {text}" for word in words if (text := normalize_text(word).strip())}
    return {word: phrase for word, phrase in phrases.items() if significant_words(phrase)} or phrases


def _hit(entry: ListedEntry, phrases: dict[str, str], symptom: str | None) -> Hit:
    parts = _parts(entry)
    scores = {
        word: sum(WEIGHTS[part] for part, text in parts.items() if phrase in text)
        for word, phrase in phrases.items()
    }
    return Hit(
        id=entry.id,
        title=entry.matter.title,
        kind=entry.matter.kind,
        status=entry.status,
        when=entry.when,
        path=entry.path,
        score=sum(scores.values()),
        matched=tuple(word for word, score in scores.items() if score),
        hit_rate=entry.hit_rate,
        symptom=symptom,
    )


def _parts(entry: ListedEntry) -> dict[str, str]:
    matter, applies = entry.matter, entry.applies
    holds = (*matter.applies_to.targets, *matter.applies_to.ops)
    texts = {
        "id and title": f"{matter.id} {matter.title}",
        "metrics": " ".join(matter.metrics),
        "scope": " ".join((matter.category, matter.kind, matter.language or "", *holds)),
        "When to apply": applies,
        "other sections": _HEADING.sub("", entry.body.replace(applies, "", 1)),
    }
    return {part: normalize_text(text) for part, text in texts.items()}
