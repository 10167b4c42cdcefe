"""Prior art: the fastest known public kernels of a family of operators, at pinned commits."""

from __future__ import annotations

from pathlib import Path

from warpsmith.core.definition import Definition
from warpsmith.core.knowledge import PriorArt, PriorArtTable
from warpsmith.knowledge import page
from warpsmith.knowledge.search import words
from warpsmith.project import Project

FILE = "prior-art.yaml"
"""File name of the table in a knowledge folder; a folder may have none."""


def read_prior_art(project: Project, layer: Path) -> tuple[PriorArt, ...]:
    """Read the table of one knowledge folder; raise BadEntry if it does not parse."""
    path = layer / FILE
    if not path.is_file():
        return ()
    label = project.relative(path)
    text = page.read_text(path, label)
    page.refuse_untrusted(text, label)
    return page.validate(PriorArtTable, page.parse_mapping(text, label, "the table"), label).prior_art


def merge_prior_art(project: Project) -> tuple[PriorArt, ...]:
    """Return the rows of all layers; the project's own row hides a shipped row of the same family."""
    layers = project.knowledge_layers[::-1]
    return tuple({row.family: row for layer in layers for row in read_prior_art(project, layer)}.values())


def find_prior_art(project: Project, definition: Definition) -> list[PriorArt]:
    """List the rows for an operator: those whose words its name or description has, else that of its type.

    The row with the longest matching phrase comes first, because it is the most specific. A family's own name
    counts only in the operator's name: `reduction` in a description says little.
    """
    operator = (*words.significant_words(definition.name.replace("_", " ")), definition.op_type)
    described = words.significant_words(definition.description)
    lengths: dict[str, int] = {}
    rows = {row.family: row for row in merge_prior_art(project)}
    for row in rows.values():
        for phrase in (row.family, *row.words):
            parts = words.significant_words(phrase.replace("-", " "))
            in_name = all(any(words.words_match(word, part) for word in operator) for part in parts)
            in_description = all(any(words.words_match(word, part) for word in described) for part in parts)
            if parts and (in_name or (in_description and phrase != row.family)):
                lengths[row.family] = max(lengths.get(row.family, 0), 2 * len(parts) + in_name)
    if not lengths and definition.op_type in rows:
        return [rows[definition.op_type]]
    return [rows[family] for family in sorted(lengths, key=lambda family: -lengths[family])]
