"""Symptom pages in docs/knowledge/symptoms/: the meaning of each symptom that the classifier detects.

The classifier's rule is the source of a page's head. `warpsmith knowledge index` renders the head, and
`warpsmith knowledge check` reports a page whose head or whose reasons do not match the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Slug
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Bottleneck
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page
from warpsmith.profiling.diagnosis.classifier import SYMPTOMS
from warpsmith.profiling.diagnosis.symptom import Symptom
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
    """File name without suffix."""
    title: str
    """The problem, in a few words."""
    metric: str
    """Name of the metric that triggers the rule."""
    threshold: str
    """The condition in words, with its numbers."""
    bottleneck: Bottleneck
    """Class of bottleneck that the symptom belongs to."""
    entries: tuple[Slug, ...] = Field(min_length=1)
    """Ids of the knowledge entries that deal with it, the first one to try first."""

    @model_validator(mode="after")
    def _check_metric(self) -> SymptomMatter:
        if self.metric not in METRICS:
            raise ValueError(f"unknown metric `{self.metric}`; known: {', '.join(METRICS)}")
        return self


@dataclass(frozen=True)
class SymptomPage:
    """A symptom page with its text."""

    matter: SymptomMatter
    """The front matter."""
    sections: dict[str, str]
    """Markdown text by the names in `SECTIONS`."""
    path: str
    """Path as the project shows it."""


def symptom_paths(layer: Path) -> list[Path]:
    """Return the symptom pages in one knowledge folder, sorted."""
    return sorted(path for path in layer.glob(f"{FOLDER}/*.md") if not path.name.startswith("."))


def read_symptom_page(project: Project, path: Path) -> SymptomPage:
    """Read one page; raise BadEntry with one sentence that begins with its path."""
    label = project.relative(path)
    parsed = page.parse_page(page.read_text(path, label), label)
    matter = page.validate(SymptomMatter, parsed.matter, label)
    if matter.id != path.stem:
        raise BadEntry(f"{label} has the id `{matter.id}`; the id must be the file name, `{path.stem}`.")
    if parsed.preamble not in ("", f"# {matter.title}"):
        raise BadEntry(f"{label} has text before `## {SECTIONS[0]}`; only `# {matter.title}` may stand there.")
    if tuple(name for name, _ in parsed.sections) != SECTIONS:
        raise BadEntry(f"{label} must have these sections in this order: {', '.join(SECTIONS)}.")
    if empty := [name for name, text in parsed.sections if not text.strip()]:
        raise BadEntry(f"{label} has nothing under `## {empty[0]}`; write it, or `Nothing known.`.")
    return SymptomPage(matter, dict(parsed.sections), label)


def render_heads(project: Project) -> dict[Path, str]:
    """Render the head of every page of a symptom that the classifier detects; keep the sections as they are.

    Raises:
        BadEntry: a page has no front matter.
    """
    symptoms = {symptom.id: symptom for symptom in SYMPTOMS}
    pages = {}
    for path in symptom_paths(project.knowledge):
        if symptom := symptoms.get(path.stem):
            label = project.relative(path)
            _, body = page.split_front_matter(page.read_text(path, label), label)
            sections = re.sub(r"\A\s*# .*\n", "", body).lstrip("\n")
            pages[path] = f"{_head(symptom)}\n\n{sections.rstrip()}\n"
    return pages


def unexplained_numbers(symptom_page: SymptomPage) -> list[str]:
    """Return the numbers of a page's threshold that `Why this threshold` does not mention."""
    reason = _numbers(symptom_page.sections["Why this threshold"])
    return [number for number in _numbers(symptom_page.matter.threshold) if number not in reason]


def _numbers(text: str) -> list[str]:
    return re.findall(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.]*\w)", text)


def _head(symptom: Symptom) -> str:
    lines = [
        "---",
        f"id: {symptom.id}",
        f"title: {symptom.title}",
        f"metric: {symptom.metric}",
        f'threshold: "{symptom.threshold}"',
        f"bottleneck: {symptom.bottleneck}",
        f"entries: [{', '.join(symptom.entries)}]",
        "---",
        "",
        f"# {symptom.title}",
    ]
    return "\n".join(lines)
