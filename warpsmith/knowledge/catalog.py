"""The catalog: every entry of both layers by id, and the search over them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from warpsmith.core.base import Model
from warpsmith.core.profile import METRICS
from warpsmith.errors import BadEntry, Misuse
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge.entry import Entry
from warpsmith.project import Project

Kind = Literal["optimization", "anti-pattern"]

WEIGHTS = {"id and title": 5, "metrics": 4, "scope": 3, "When to apply": 2, "other sections": 1}
"""What a word is worth in each part of an entry; the parts that hold it add up."""


class Hit(Model):
    """An entry that a search found."""

    id: str
    """The entry."""
    title: str
    """What to do, or what not to do."""
    kind: Kind
    """Which of the two."""
    status: Literal["active", "refined", "refuted"]
    """`refuted` ones come last."""
    when: str
    """The first line of `When to apply`."""
    path: str
    """Its file."""
    score: int
    """Sum of `WEIGHTS` over the words and the parts that hold them."""
    matched: tuple[str, ...]
    """The words that it holds."""


class Hits(Model):
    """What a search found, best first."""

    hits: tuple[Hit, ...]
    """One an entry."""


@dataclass(frozen=True)
class Catalog:
    """All entries, both layers read as one."""

    project: Project
    """Whose."""
    entries: dict[str, Entry]
    """By id, in order; the project's own entry hides the shipped one of the same id."""

    @classmethod
    def load(cls, project: Project) -> Catalog:
        """Read every entry.

        Raises:
            BadEntry: an entry does not read, or one layer has two of an id.
        """
        found: dict[str, Entry] = {}
        for layer in reversed(project.knowledge_layers):
            seen: dict[str, Entry] = {}
            for path in entries.paths(layer):
                entry = entries.read(project, path)
                if twin := seen.get(entry.id):
                    raise BadEntry(f"{entry.path} has the id of {twin.path}; rename one of them.")
                seen[entry.id] = entry
            found |= seen
        return cls(project, dict(sorted(found.items())))

    def get(self, id: str) -> Entry:
        """The entry of an id; raises Misuse naming the nearest ids."""
        if id in self.entries:
            return self.entries[id]
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

        Sorted by: not refuted first, words found, score, id. A word stands for all that begin with it;
        `bank-conflicts` is a phrase. `language` keeps the shared entries, `target` those for its kind.

        Raises:
            Misuse: an unknown metric or target.
        """
        targets = {target, _kind(self.project, target)} if target else set()
        kept = [
            entry
            for entry in self.entries.values()
            if (kind is None or entry.matter.kind == kind)
            and (language is None or entry.matter.language in (None, language))
            and (not targets or targets & set(entry.matter.applies_to.targets))
            and (metric is None or _known(metric) in entry.matter.metrics)
        ]
        phrases = {word: f" {plain}" for word in words if (plain := _plain(word).strip())}
        hits = [_hit(entry, phrases) for entry in kept]
        found = [hit for hit in hits if hit.matched or not phrases]
        return sorted(found, key=lambda h: (h.status == "refuted", -len(h.matched), -h.score, h.id))


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


def _hit(entry: Entry, phrases: dict[str, str]) -> Hit:
    parts = _parts(entry)
    scores = {
        word: sum(WEIGHTS[part] for part, text in parts.items() if phrase in text)
        for word, phrase in phrases.items()
    }
    return Hit(
        id=entry.id,
        title=entry.matter.title,
        kind=entry.matter.kind,
        status=entry.matter.status,
        when=entry.when,
        path=entry.path,
        score=sum(scores.values()),
        matched=tuple(word for word, score in scores.items() if score),
    )


def _parts(entry: Entry) -> dict[str, str]:
    matter = entry.matter
    others = (text for name, text in entry.sections.items() if name != "When to apply")
    holds = (*matter.applies_to.targets, *matter.applies_to.ops)
    texts = {
        "id and title": f"{matter.id} {matter.title}",
        "metrics": " ".join(matter.metrics),
        "scope": " ".join((matter.category, matter.kind, matter.language or "", *holds)),
        "When to apply": entry.sections["When to apply"],
        "other sections": " ".join(others),
    }
    return {part: _plain(text) for part, text in texts.items()}


def _plain(text: str) -> str:
    """Lower case, words set apart by one space, one space around the whole."""
    words = re.sub(r"[_\W]+", " ", text.casefold()).strip()
    return f" {words} "
