"""Symptom pages: what a counter past a threshold means, in docs/knowledge/symptoms/, one page a symptom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Slug
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page
from warpsmith.project import Project

FOLDER = "symptoms"

SECTIONS = (
    "What it looks like",
    "Mechanism",
    "Why this threshold",
    "What to do",
    "What is mistaken for it",
)
"""The second-level headings of a page, in order."""


class SymptomMatter(Model):
    """Front matter of a symptom's page."""

    id: Slug
    """Its file's stem."""
    title: str
    """What is wrong, in a few words."""
    metric: str
    """The trigger, by the name that profiles use."""
    threshold: str
    """When it holds, in words."""
    bottleneck: Bottleneck
    """The class that it stands for."""
    entries: tuple[Slug, ...] = Field(min_length=1)
    """Knowledge entries that deal with it, the first one to try first."""

    @model_validator(mode="after")
    def _known(self) -> SymptomMatter:
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric `{self.metric}`; known: {', '.join(METRICS)}")
        return self


@dataclass(frozen=True)
class SymptomPage:
    """A page with its text."""

    matter: SymptomMatter
    """The front matter."""
    sections: dict[str, str]
    """Name of each of `SECTIONS` to its Markdown text."""
    path: str
    """Its file, as the project shows it."""


def paths(layer: Path) -> list[Path]:
    """The pages in one knowledge folder, in order."""
    return sorted(path for path in layer.glob(f"{FOLDER}/*.md") if not path.name.startswith("."))


def read(project: Project, path: Path) -> SymptomPage:
    """One page; raises BadEntry, one sentence that begins with its path."""
    shown = project.relative(path)
    taken = page.parse(page.text_of(path, shown), shown)
    matter = page.validate(SymptomMatter, taken.matter, shown)
    if matter.id != path.stem:
        raise BadEntry(f"{shown} has the id `{matter.id}`; an id is its file's stem, here `{path.stem}`.")
    if taken.preamble not in ("", f"# {matter.title}"):
        raise BadEntry(f"{shown} has text before `## {SECTIONS[0]}`; only `# {matter.title}` may stand there.")
    if tuple(name for name, _ in taken.sections) != SECTIONS:
        raise BadEntry(f"{shown} must have these sections in this order: {', '.join(SECTIONS)}.")
    if empty := [name for name, text in taken.sections if not text.strip()]:
        raise BadEntry(f"{shown} has nothing under `## {empty[0]}`; say it, or `Nothing known.`.")
    return SymptomPage(matter, dict(taken.sections), shown)
