"""Entry: one piece of knowledge, as the front matter of its page says it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Sha256, Slug
from warpsmith.core.campaign import Category
from warpsmith.core.profile import METRICS

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
        unknown = [metric for metric in self.metrics if metric not in METRICS]
        if unknown:
            raise ValueError(f"unknown metrics {unknown}; known: {', '.join(METRICS)}")
        return self
