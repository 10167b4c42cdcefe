"""The catalog: every entry of both layers by id, and the search over them."""

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
from warpsmith.knowledge.entry import Entry, Listed
from warpsmith.knowledge.words import plain, telling
from warpsmith.project import Project

Kind = Literal["optimization", "anti-pattern"]

WEIGHTS = {"id and title": 5, "metrics": 4, "scope": 3, "When to apply": 2, "other sections": 1}
"""What a word is worth in each part of an entry; the parts that hold it add up."""

_LAST = ("demoted", "refuted")
"""Statuses that come after all others, in this order."""

_HEADING = re.compile(r"^##? .*$", re.MULTILINE)


class Hit(Model):
    """An entry that a search found."""

    id: str
    """The entry."""
    title: str
    """What to do, or what not to do."""
    kind: Kind
    """Which of the two."""
    status: Status
    """`demoted` ones come after all others, `refuted` ones last."""
    when: str
    """The first line of `When to apply`."""
    path: str
    """Its file."""
    score: int
    """Sum of `WEIGHTS` over the words and the parts that hold them."""
    matched: tuple[str, ...]
    """The words that it holds."""
    hit_rate: HitRate | None = None
    """What the project's rounds made of it; null where none applied it."""
    symptom: str | None = None
    """The symptom in the words that leads to it; null where only the words do."""


class Hits(Model):
    """What a search found, best first."""

    hits: tuple[Hit, ...]
    """One an entry."""


@dataclass(frozen=True)
class Catalog:
    """All entries, both layers read as one."""

    project: Project
    """Whose."""
    entries: dict[str, Listed]
    """By id, in order; the project's own entry hides the shipped one of the same id."""

    @classmethod
    def load(cls, project: Project) -> Catalog:
        """Read every entry's front matter, and what the project's rounds made of it.

        Raises:
            BadEntry: an entry does not read, or one layer has two of an id.
        """
        rates = hit_rates.by_entry(project)
        found: dict[str, Listed] = {}
        for layer in reversed(project.knowledge_layers):
            seen: dict[str, Listed] = {}
            for path in entries.paths(layer):
                entry = entries.listed(project, path, rates)
                if twin := seen.get(entry.id):
                    raise BadEntry(f"{entry.path} has the id of {twin.path}; rename one of them.")
                seen[entry.id] = entry
            found |= seen
        return cls(project, dict(sorted(found.items())))

    def get(self, id: str) -> Entry:
        """The entry of an id, taken apart; raises Misuse naming the nearest ids, BadEntry where it is no entry."""
        if id in self.entries:
            read = entries.read(self.project, self.project.root / self.entries[id].path)
            return read.model_copy(update={"hit_rate": self.entries[id].hit_rate})
        near = difflib.get_close_matches(id, self.entries, n=3, cutoff=0.4)
        hint = f"near it: {', '.join(near)}" if near else "look with `warpsmith knowledge search`"
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
        """Entries that hold at least one of the words, or all of them where no word is given.

        Where the words together tell of a symptom, its entries come first, in its order. Then: words found,
        score, id; demoted and refuted ones last. A word stands for all that begin with it; `bank-conflicts` is a
        phrase.
        `language` keeps the shared entries, `target` those for its kind.

        Raises:
            Misuse: an unknown language, metric or target.
            BadEntry: a table of symptoms does not read.
        """
        if language is not None:
            self._knows(language)
        targets = {target, _kind(self.project, target)} if target else set()
        kept = [
            entry
            for entry in self.entries.values()
            if (kind is None or entry.matter.kind == kind)
            and (language is None or entry.matter.language in (None, language))
            and (not targets or targets & set(entry.matter.applies_to.targets))
            and (metric is None or _known(metric) in entry.matter.metrics)
        ]
        led = self._led(" ".join(words))
        phrases = _phrases(words)
        hits = [_hit(entry, phrases, led.get(entry.id)) for entry in kept]
        found = [hit for hit in hits if hit.matched or hit.symptom or not phrases]
        places = {id: place for place, id in enumerate(led)}

        def rank(hit: Hit) -> tuple[int, int, int, int, str]:
            last = _LAST.index(hit.status) + 1 if hit.status in _LAST else 0
            return last, places.get(hit.id, len(led)), -len(hit.matched), -hit.score, hit.id

        return sorted(found, key=rank)

    def _knows(self, language: str) -> None:
        known = {*languages.names(), *filter(None, (entry.matter.language for entry in self.entries.values()))}
        if language not in known:
            raise Misuse(f"unknown language `{language}`; known: {', '.join(sorted(known))}.")

    def _led(self, text: str) -> dict[str, str]:
        """Entries that the symptoms in a text lead to, in their order, each with the symptom's title."""
        table = symptoms.known(self.project) if text else ()
        led: dict[str, str] = {}
        for symptom in symptoms.recognised(table, text):
            led |= {id: symptom.title for id in symptom.entries if id not in led}
        return led


def _kind(project: Project, target: str) -> str:
    if target in ("gpu", "cpu"):
        return target
    from warpsmith.knowledge import hardware

    known = hardware.targets(project)
    if target not in known:
        raise Misuse(f"unknown target `{target}`; known: gpu, {', '.join(known)}.")
    return known[target].kind


def _known(metric: str) -> str:
    if metric not in METRICS:
        raise Misuse(f"unknown metric `{metric}`; known: {', '.join(METRICS)}.")
    return metric


def _phrases(words: Sequence[str]) -> dict[str, str]:
    """Words to what is looked for in a text; words that tell nothing count where there are no others."""
    found = {word: f" {text}" for word in words if (text := plain(word).strip())}
    return {word: phrase for word, phrase in found.items() if telling(phrase)} or found


def _hit(entry: Listed, phrases: dict[str, str], symptom: str | None) -> Hit:
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


def _parts(entry: Listed) -> dict[str, str]:
    matter, applies = entry.matter, entry.applies
    holds = (*matter.applies_to.targets, *matter.applies_to.ops)
    texts = {
        "id and title": f"{matter.id} {matter.title}",
        "metrics": " ".join(matter.metrics),
        "scope": " ".join((matter.category, matter.kind, matter.language or "", *holds)),
        "When to apply": applies,
        "other sections": _HEADING.sub("", entry.body.replace(applies, "", 1)),
    }
    return {part: plain(text) for part, text in texts.items()}
