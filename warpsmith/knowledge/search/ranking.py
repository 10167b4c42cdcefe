"""Ranking of entries by the words of a question: BM25 of SQLite's full-text search, over stems and synonyms.

A question is a list of concepts: one a word, or one for several words that the synonyms know as a term. An entry
scores once for a concept, by the word itself or by its best synonym.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from warpsmith.errors import MachineLacks
from warpsmith.knowledge.entry import ListedEntry
from warpsmith.knowledge.search.words import is_significant, normalize_text

COLUMNS = {"title": 6.0, "tags": 4.0, "applies": 2.0, "body": 1.0}
"""Part of an entry to the weight of a word in it."""

SYNONYM, PART = 0.8, 0.5
"""Weight of a synonym; and of the words of a term apart, or a longer word that begins with the one in question."""

SHORTEST_PREFIX = 4
"""Characters from which a word also stands for longer words."""

_HEADING = re.compile(r"^##? .*$", re.MULTILINE)


class Concept(NamedTuple):
    """One word or term of a question."""

    words: tuple[str, ...]
    """Words of the question that it stands for, as the question has them."""
    phrase: str
    """The normalized words."""
    synonyms: tuple[str, ...]
    """Normalized phrases of the same meaning."""


class Relevance(NamedTuple):
    """Relevance of an entry for a question."""

    score: float
    """Sum over the concepts of the best BM25 score, weighted by `COLUMNS`."""
    coverage: float
    """Share of the question's weight that the entry's concepts have; rare words weigh more."""
    matched: tuple[str, ...]
    """Words of the question that the entry holds, itself or by a synonym."""


@dataclass(frozen=True)
class WordIndex:
    """Full-text index of entries, in memory."""

    connection: sqlite3.Connection
    """Database with the table `entry`."""
    ids: tuple[str, ...]
    """Ids of the entries by row number, from 1 on."""

    @classmethod
    def build(cls, entries: Iterable[ListedEntry], names: Mapping[str, str]) -> WordIndex:
        """Index entries; `names` are other names of an entry by its id, such as its symptoms.

        Raises:
            MachineLacks: Python's SQLite was built without FTS5.
        """
        connection, listed = sqlite3.connect(":memory:"), tuple(entries)
        try:
            connection.execute(
                f"CREATE VIRTUAL TABLE entry USING fts5({', '.join(COLUMNS)}, tokenize = 'porter unicode61')"
            )
        except sqlite3.OperationalError as error:
            raise MachineLacks(
                f"This Python's SQLite {sqlite3.sqlite_version} has no full-text search ({error}), which"
                " `warpsmith knowledge search` needs; use a Python that is built with FTS5."
            ) from error
        places = ", ".join("?" * len(COLUMNS))
        rows = (_columns(entry, names.get(entry.id, "")) for entry in listed)
        connection.executemany(f"INSERT INTO entry VALUES ({places})", rows)
        return cls(connection, tuple(entry.id for entry in listed))

    def rank(self, concepts: Sequence[Concept]) -> dict[str, Relevance]:
        """Return the relevance of every entry that holds at least one concept, by id."""
        parts_by_id: dict[str, list[tuple[float, float, Concept]]] = {}
        total = 0.0
        for concept in concepts:
            scores = self._scores(concept)
            weight = self._rarity(len(scores))
            total += weight
            for id, score in scores.items():
                parts_by_id.setdefault(id, []).append((score, weight, concept))
        return {
            id: Relevance(
                score=sum(score for score, _, _ in parts),
                coverage=sum(weight for _, weight, _ in parts) / total,
                matched=tuple(word for _, _, concept in parts for word in concept.words),
            )
            for id, parts in parts_by_id.items()
        }

    def _scores(self, concept: Concept) -> dict[str, float]:
        """Return the best score of each entry that holds the concept's words or a synonym."""
        best: dict[str, float] = {}
        queries = [(1.0, f'"{concept.phrase}"'), *((SYNONYM, f'"{phrase}"') for phrase in concept.synonyms)]
        if " " in concept.phrase:
            queries.append((PART, " AND ".join(f'"{word}"' for word in concept.phrase.split())))
        elif len(concept.phrase) >= SHORTEST_PREFIX:
            queries.append((PART, f'"{concept.phrase}"*'))
        for weight, query in queries:
            for id, score in self._matches(query).items():
                best[id] = max(best.get(id, 0.0), weight * score)
        return best

    def _matches(self, query: str) -> dict[str, float]:
        """Return the score of each entry for one query, summed over the parts.

        A word is as rare as it is in that part: `warps` tells much in a title and little in a text. FTS5's own
        measure of rarity is zero for a word of more than half of the rows, so it is replaced.
        """
        scores: dict[str, float] = {}
        for column, weight in COLUMNS.items():
            rows = self.connection.execute(
                "SELECT rowid, -bm25(entry) FROM entry WHERE entry MATCH ?", (f"{column} : ({query})",)
            ).fetchall()
            count, total = len(rows), len(self.ids)
            built_in = max(math.log((total - count + 0.5) / (count + 0.5)), 1e-6)
            for row, score in rows:
                id = self.ids[row - 1]
                scores[id] = scores.get(id, 0.0) + weight * self._rarity(count) * score / built_in
        return scores

    def _rarity(self, count: int) -> float:
        """Return the weight of a concept that `count` entries hold: the more, the fewer hold it."""
        return math.log(1 + (len(self.ids) - count + 0.5) / (count + 0.5))


def parse_question(words: Iterable[str], synonyms: Sequence[Sequence[str]]) -> list[Concept]:
    """Return the concepts of a question.

    Args:
        words: words or sentences; `bank-conflicts` is a term of two words. Idle words such as `how` and bare
            numbers count only if there are no others.
        synonyms: groups of phrases of one meaning.
    """
    tokens = [(word, normalize_text(word).strip()) for text in words for word in text.split()]
    tokens = [(word, phrase) for word, phrase in tokens if phrase]
    significant = [token for token in tokens if is_significant(token[1])] or tokens
    groups = [[normalize_text(phrase).strip() for phrase in group] for group in synonyms]
    concepts: dict[str, Concept] = {}
    position = 0
    while position < len(significant):
        length, term, others = _longest_term(significant[position:], groups)
        covered = tuple(word for word, _ in significant[position : position + length])
        concepts.setdefault(term, Concept(covered, term, others))
        position += length
    return list(concepts.values())


def _longest_term(
    tokens: Sequence[tuple[str, str]], groups: Sequence[Sequence[str]]
) -> tuple[int, str, tuple[str, ...]]:
    """Return the number of tokens of the longest synonym that they begin with, the term, and its synonyms."""
    for length in range(min(4, len(tokens)), 0, -1):
        term = " ".join(phrase for _, phrase in tokens[:length])
        others = {
            phrase for group in groups if any(_same_term(term, phrase) for phrase in group) for phrase in group
        }
        if others:
            return length, term, tuple(sorted(others - {term}))
    return 1, tokens[0][1], ()


def _same_term(term: str, phrase: str) -> bool:
    """Return whether two terms are the same up to a plural of their last word."""
    return term == phrase or term.removesuffix("s") == phrase.removesuffix("s")


def _columns(entry: ListedEntry, names: str) -> tuple[str, ...]:
    matter, applies = entry.matter, entry.applies
    tags = (*matter.metrics, matter.category, matter.kind, matter.language or "", *matter.applies_to.targets)
    body = _HEADING.sub("", entry.body.replace(applies, "", 1))
    texts = (
        f"{matter.id} {matter.title}",
        f"{' '.join(tags)} {' '.join(matter.applies_to.ops)} {names}",
        applies,
        body,
    )
    return tuple(normalize_text(text) for text in texts)
