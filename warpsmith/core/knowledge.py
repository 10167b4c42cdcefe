"""What is known: an entry, as the front matter of its page says it, and the symptoms that lead to entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Sha256, Slug
from warpsmith.core.campaign import Category
from warpsmith.core.metrics import METRICS

SECTIONS = (
    "When to apply",
    "Mechanism",
    "Affected metrics",
    "Implementation",
    "Evidence",
    "Generalization",
    "Pitfalls",
    "Interactions",
)
"""The second-level headings of an entry, in order."""


class Evidence(Model):
    """What backs an entry."""

    source: Literal["local", "external"]
    """`local`: a round's record. `external`: a public document."""
    record: str | None = None
    """The record's path in the project, for local evidence."""
    sha256: Sha256 | None = None
    """The record's hash when it was cited."""
    citation: str | None = None
    """The document, for external evidence."""
    url: str | None = None
    """Where it is published."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.source == "local" and not (self.record and self.sha256):
            raise ValueError("local evidence names a record and its sha256")
        if self.source == "external" and not self.citation:
            raise ValueError("external evidence names a citation")
        return self


class AppliesTo(Model):
    """Where an entry holds."""

    targets: tuple[str, ...] = Field(min_length=1)
    """`gpu`, `cpu`, or hardware ids."""
    ops: tuple[str, ...] = Field(min_length=1)
    """`any`, or families of operators."""


class EntryMatter(Model):
    """Front matter of an entry."""

    id: Slug
    """Its file's stem, unique over the catalog."""
    title: str
    """What to do, or what not to do."""
    kind: Literal["optimization", "anti-pattern"]
    """Which of the two."""
    scope: Literal["shared", "language"]
    """Whether it holds in every language."""
    language: str | None
    """The language it is about; null where shared."""
    category: Category
    """The kind of change."""
    applies_to: AppliesTo
    """Where it holds."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """Metrics it moves, by the names that profiles use."""
    evidence: tuple[Evidence, ...] = Field(min_length=1)
    """What backs it."""
    status: Literal["active", "refined", "refuted"]
    """`refuted` entries stay, with what refuted them."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.scope == "language") != (self.language is not None):
            raise ValueError("`language` is given exactly where scope is `language`")
        _refuse_unknown(self.metrics)
        return self


class Symptom(Model):
    """What an engineer sees go wrong, and the entries that deal with it."""

    title: str
    """In the words in which it is met: `Occupancy is low`."""
    also: tuple[str, ...] = ()
    """Other ways of saying it; a search that holds the words of one of them means this symptom."""
    means: str
    """What is behind it, in a sentence or two."""
    shows: dict[str, str] = Field(min_length=1)
    """Metrics that show it, by the names that profiles use, each with how it reads: `near its ceiling`."""
    optimizations: tuple[Slug, ...] = ()
    """Entries to try, the likeliest first."""
    anti_patterns: tuple[Slug, ...] = ()
    """Entries to rule out."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _refuse_unknown(self.shows)
        if not self.entries:
            raise ValueError(f"the symptom `{self.title}` names no entry")
        return self

    @property
    def entries(self) -> tuple[str, ...]:
        """All entries that it leads to, those to try first."""
        return (*self.optimizations, *self.anti_patterns)


class SymptomTable(Model):
    """The symptoms of one knowledge folder: its `symptoms.yaml`."""

    symptoms: tuple[Symptom, ...]
    """In the order in which pages show them."""

    @model_validator(mode="after")
    def _told_apart(self) -> Self:
        titles = [symptom.title for symptom in self.symptoms]
        twins = sorted({title for title in titles if titles.count(title) > 1})
        if twins:
            raise ValueError(f"the symptom `{twins[0]}` stands twice")
        return self


def _refuse_unknown(metrics: Iterable[str]) -> None:
    unknown = [metric for metric in metrics if metric not in METRICS]
    if unknown:
        raise ValueError(f"unknown metrics {unknown}; known: {', '.join(METRICS)}")
