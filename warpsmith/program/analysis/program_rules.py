"""Rules of the entries for whole programs: what a program needs for one, and what the entry changes."""

from __future__ import annotations

from warpsmith.core.base import Slug
from warpsmith.core.trial import ProgramRules
from warpsmith.knowledge.catalog import Catalog
from warpsmith.project import Project


def list_program_rules(project: Project) -> dict[Slug, ProgramRules]:
    """Return the rules of the entries for whole programs, by id; raises BadEntry if an entry does not read."""
    entries = Catalog.load(project, rated=False).entries.values()
    return {entry.id: entry.matter.program for entry in entries if entry.matter.program}
