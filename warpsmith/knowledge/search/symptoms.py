"""Symptom tables: search terms that lead from a complaint in plain words to knowledge entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from warpsmith.core.knowledge import SymptomRow, SymptomTable
from warpsmith.knowledge import page
from warpsmith.knowledge.search import words
from warpsmith.project import Project

FILE = "symptoms.yaml"
"""File name of the table in a knowledge folder; a folder may have none."""


def read_symptom_table(project: Project, layer: Path) -> tuple[SymptomRow, ...]:
    """Read the table of one knowledge folder; raise BadEntry if it does not parse."""
    path = layer / FILE
    if not path.is_file():
        return ()
    label = project.relative(path)
    text = page.read_text(path, label)
    page.refuse_untrusted(text, label)
    return page.validate(SymptomTable, page.parse_mapping(text, label, "the table"), label).symptoms


def merge_symptom_tables(project: Project, without: Collection[str] = ()) -> tuple[SymptomRow, ...]:
    """Return the rows of all layers; the project's own row hides a shipped row of the same title.

    Entries `without` are left out, and so are rows that lead to no other.
    """
    layers = project.knowledge_layers[::-1]
    rows = {row.title: row for layer in layers for row in read_symptom_table(project, layer)}
    visible = (row.without(without) for row in rows.values()) if without else rows.values()
    return tuple(row for row in visible if row.entries)


def match_symptoms(symptoms: Sequence[SymptomRow], text: str) -> list[tuple[SymptomRow, frozenset[str]]]:
    """Return the rows that a text matches with its matching words, the row with the most of them first.

    A text matches a row if it holds every significant word of its title or of one of its other names. A row whose
    matching words are all part of another row's is left out: `tensor cores idle` does not mean `idle`.
    """
    text_words = words.significant_words(text)
    matches = {symptom.title: _matching_words(symptom, text_words) for symptom in symptoms}
    matched = [
        symptom
        for symptom in symptoms
        if (own := matches[symptom.title]) and not any(own < other for other in matches.values())
    ]
    rows = sorted(matched, key=lambda symptom: -len(matches[symptom.title]))
    return [(symptom, matches[symptom.title]) for symptom in rows]


def _matching_words(symptom: SymptomRow, text_words: Sequence[str]) -> frozenset[str]:
    """Return the words of a text that match a row, over all names that the text holds; empty if it holds none."""
    names = [words.significant_words(name) for name in (symptom.title, *symptom.also)]
    present = [
        name for name in names if all(any(words.words_match(word, part) for word in text_words) for part in name)
    ]
    return frozenset(
        word for word in text_words for name in present if any(words.words_match(word, part) for part in name)
    )
