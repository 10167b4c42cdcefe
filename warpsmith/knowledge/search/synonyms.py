"""Synonyms: groups of words that mean the same to a kernel engineer, for searches."""

from __future__ import annotations

from pathlib import Path

from warpsmith.core.knowledge import SynonymTable
from warpsmith.knowledge import page
from warpsmith.project import Project

FILE = "synonyms.yaml"
"""File name of the table in a knowledge folder; a folder may have none."""


def read_synonyms(project: Project, layer: Path) -> tuple[tuple[str, ...], ...]:
    """Read the groups of one knowledge folder; raise BadEntry if the table does not parse."""
    path = layer / FILE
    if not path.is_file():
        return ()
    label = project.relative(path)
    text = page.read_text(path, label)
    page.refuse_untrusted(text, label)
    return page.validate(SynonymTable, page.parse_mapping(text, label, "the table"), label).synonyms


def merge_synonyms(project: Project) -> tuple[tuple[str, ...], ...]:
    """Return the groups of all layers."""
    return tuple(group for layer in project.knowledge_layers for group in read_synonyms(project, layer))
