"""Symptoms: the tables of both layers read as one, and which symptom a search means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith.core.knowledge import Symptom, SymptomTable
from warpsmith.knowledge import page, words
from warpsmith.project import Project

FILE = "symptoms.yaml"
"""The table's name in a knowledge folder; a folder may do without."""


def of(project: Project, layer: Path) -> tuple[Symptom, ...]:
    """The symptoms of one knowledge folder; raises BadEntry where its table does not read."""
    path = layer / FILE
    if not path.is_file():
        return ()
    shown = project.relative(path)
    text = page.text_of(path, shown)
    page.refuse_untrusted(text, shown)
    return page.validate(SymptomTable, page.mapping(text, shown, "the table"), shown).symptoms


def known(project: Project) -> tuple[Symptom, ...]:
    """The symptoms of both layers; the project's own hides the shipped one of the same title."""
    found = {symptom.title: symptom for layer in project.knowledge_layers[::-1] for symptom in of(project, layer)}
    return tuple(found.values())


def recognised(symptoms: Sequence[Symptom], text: str) -> list[Symptom]:
    """Symptoms that the text tells of, the most fully told first.

    A symptom is told where the text holds every telling word of its title or of one of its other names. One
    whose words are all part of what another was told by gives way: `tensor cores idle` is not `idle`.
    """
    said = words.telling(text)
    told = {symptom.title: _told(symptom, said) for symptom in symptoms}
    found = [
        symptom
        for symptom in symptoms
        if (mine := told[symptom.title]) and not any(mine < other for other in told.values())
    ]
    return sorted(found, key=lambda symptom: -len(told[symptom.title]))


def _told(symptom: Symptom, said: Sequence[str]) -> frozenset[str]:
    """The words of the text that tell of a symptom, by all its names that it holds; none: it is not told."""
    names = [words.telling(name) for name in (symptom.title, *symptom.also)]
    held = [name for name in names if all(any(words.same(word, part) for word in said) for part in name)]
    return frozenset(word for word in said for name in held if any(words.same(word, part) for part in name))
