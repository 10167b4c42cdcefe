"""What is known: an entry, as the front matter of its page says it, and the symptoms that lead to entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Sha256, Slug
from warpsmith.core.campaign import Category
from warpsmith.core.evaluation import Verdict
from warpsmith.core.metrics import METRICS
from warpsmith.core.trial import ProgramRules

Status = Literal["active", "refined", "refuted", "demoted"]
"""What an entry is worth. `demoted` follows from the rounds that tried it and stands in no front matter."""

DEMOTED_AFTER, DEMOTED_ON = 4, 2
"""Tries without one acceptance, and the operators that they must be of, which demote an entry."""

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
    program: ProgramRules | None = None
    """What it needs and promises where it changes a whole program; null: it changes one kernel."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.scope == "language") != (self.language is not None):
            raise ValueError("`language` is given exactly where scope is `language`")
        _refuse_unknown(self.metrics)
        return self


class Try(Model):
    """A round, or a trial of a whole program, that applied an entry."""

    record: str
    """Its record, relative to the project."""
    operator: str
    """The definition, the campaign in a repository, or the program."""
    target: str
    """The device kind; a trial has its device's own name."""
    solution: str
    """What was judged: the version, as `triton/v3`; the commit; the program's file or module."""
    verdict: Verdict
    """What became of it; ROLLBACK once it was struck."""
    gain: float | None
    """Measured gain over the best version before; null where not measured, or struck."""


class HitRate(Model):
    """How often an entry helped: over the rounds and trials whose plan names it, baselines apart."""

    tried: int
    """Rounds and trials that applied it, alone or with others."""
    accepted: int
    """Those that were accepted, or kept."""
    measured: int
    """Those with a measured gain, rolled back or not."""
    median_gain: float | None
    """Median of the measured gains: 0.2 is 20 % faster; null without any."""
    demoted: str | None
    """Why its tries speak against it; null where they do not, and again after the first acceptance."""
    tries: tuple[Try, ...]
    """In order of their records' paths."""

    @classmethod
    def of(cls, tries: Sequence[Try]) -> HitRate:
        """The rate over some tries; the one place where the rule of demotion stands."""
        accepted = sum(one.verdict.accepted for one in tries)
        gains = [one.gain for one in tries if one.gain is not None]
        operators = {one.operator for one in tries}
        failing = not accepted and len(tries) >= DEMOTED_AFTER and len(operators) >= DEMOTED_ON
        return cls(
            tried=len(tries),
            accepted=accepted,
            measured=len(gains),
            median_gain=median(gains) if gains else None,
            demoted=f"{len(tries)} tries on {len(operators)} operators, none accepted" if failing else None,
            tries=tuple(sorted(tries, key=lambda one: one.record)),
        )

    @property
    def gain(self) -> str:
        """The median gain with how many tries are behind it: `+13.6 % (2 tries)`, `-`."""
        if self.median_gain is None:
            return "-"
        return f"{100 * self.median_gain:+.1f} % ({self.measured} {'tries' if self.measured > 1 else 'try'})"

    @property
    def text(self) -> str:
        """One line: `tried 3, accepted 2, median gain +13.6 % (3 tries)`."""
        return f"tried {self.tried}, accepted {self.accepted}, median gain {self.gain}"


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
