"""Models of knowledge: the front matter of entries, hit rates, and the symptom table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from math import sqrt
from statistics import NormalDist, median
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from warpsmith.core.base import Model, Sha256, Slug
from warpsmith.core.campaign import Category
from warpsmith.core.evaluation import Interval, Verdict
from warpsmith.core.metrics import METRICS
from warpsmith.core.trial import ProgramRules

Status = Literal["active", "refined", "refuted", "demoted"]
"""Status of an entry. `demoted` follows from the rounds that tried it and is not in any front matter."""

EFFECT_AFTER, EFFECT_LEAST = 8, 0.02
"""Number of campaigns with and without an entry, and the effect that it must then be able to have."""

DEMOTED_AFTER, DEMOTED_ON = 4, 2
"""Number of tries without an acceptance, and of their operators, at which an entry is demoted."""

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
    """One piece of evidence for an entry."""

    source: Literal["local", "external"]
    """`local`: a record of a round or of a benchmark. `external`: a public document."""
    record: str | None = None
    """Path of the record in the project, for local evidence."""
    sha256: Sha256 | None = None
    """SHA-256 of the record when it was cited."""
    citation: str | None = None
    """Citation of the document, for external evidence."""
    url: str | None = None
    """URL of the document."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.source == "local" and not (self.record and self.sha256):
            raise ValueError("local evidence names a record and its sha256")
        if self.source == "external" and not self.citation:
            raise ValueError("external evidence names a citation")
        return self


class AppliesTo(Model):
    """Targets and operators that an entry applies to."""

    targets: tuple[str, ...] = Field(min_length=1)
    """Targets: `gpu`, `cpu`, or hardware ids."""
    ops: tuple[str, ...] = Field(min_length=1)
    """Operators: `any`, or families."""


class EntryMatter(Model):
    """Front matter of an entry."""

    id: Slug
    """File name without suffix, unique over the catalog."""
    title: str
    """Title: what to do, or what not to do."""
    kind: Literal["optimization", "anti-pattern"]
    """Optimization or anti-pattern."""
    scope: Literal["shared", "language"]
    """Scope: all languages, or one."""
    language: str | None
    """Language; null if it applies to all."""
    category: Category
    """Category of change."""
    applies_to: AppliesTo
    """Conditions under which it holds."""
    metrics: tuple[str, ...] = Field(min_length=1)
    """Metrics that it affects, by name."""
    evidence: tuple[Evidence, ...] = Field(min_length=1)
    """Evidence for it."""
    status: Literal["active", "refined", "refuted"]
    """Status; `refuted` entries stay in the catalog with the evidence against them."""
    program: ProgramRules | None = None
    """Rules for entries that change a whole program; null for entries about one kernel."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.scope == "language") != (self.language is not None):
            raise ValueError("`language` is given exactly where scope is `language`")
        _refuse_unknown(self.metrics)
        return self


class Try(Model):
    """A round, or a trial of a whole program, that applied an entry."""

    record: str
    """Path of the record, relative to the project."""
    operator: str
    """Name of the definition, the campaign in a repository, or the program."""
    target: str
    """Kind of device; a trial has the name of its device."""
    solution: str
    """Judged object: the version, as `triton/v3`; the commit; the program's file or module."""
    verdict: Verdict
    """Verdict; ROLLBACK once it was struck."""
    gain: float | None
    """Measured gain over the previous best version; null if not measured, or struck."""
    unexplained: bool = False
    """True if it was accepted although the metric of its plan did not move as predicted."""


class Effect(Model):
    """Effect of an entry on the gain of a round that it fits, from campaigns that withheld entries at random."""

    shown: int
    """Number of campaigns that could see it."""
    withheld: int
    """Number of campaigns that could not."""
    gain: float
    """Difference of the mean gains of a round with and without it: 0.02 is 2 % of gain more."""
    interval: Interval | None
    """95 % interval of the difference; null while there are too few campaigns."""

    @property
    def refutation(self) -> str | None:
        """Reason for demotion: enough campaigns, and no gain worth having; null otherwise."""
        few = min(self.shown, self.withheld) < EFFECT_AFTER
        if few or self.interval is None or self.interval.high >= EFFECT_LEAST:
            return None
        return f"no effect: {self.text}"

    @property
    def text(self) -> str:
        """Effect in words: `+3.1 % a round [-0.5 %, +6.7 %], 8 campaigns with it and 9 without`."""
        ends = self.interval and f" [{100 * self.interval.low:+.1f} %, {100 * self.interval.high:+.1f} %]"
        campaigns = f"{self.shown} campaigns with it and {self.withheld} without"
        return f"{100 * self.gain:+.1f} % a round{ends or ''}, {campaigns}"


class HitRate(Model):
    """Success of an entry over the rounds and trials whose plan names it, without baselines."""

    tried: int
    """Number of rounds and trials that applied it, alone or with others."""
    accepted: int
    """Number of those that were accepted."""
    unexplained: int = 0
    """Number of those accepted although the metric of their plan did not move as predicted."""
    measured: int
    """Number of tries with a measured gain, rolled back or not, without unexplained ones."""
    median_gain: float | None
    """Median of the measured gains, without unexplained ones: 0.2 is 20 % faster; null without any."""
    demoted: str | None
    """Reason for demotion; null if it is not demoted, and again after the first explained acceptance."""
    tries: tuple[Try, ...]
    """Tries in order of their records' paths."""
    effect: Effect | None = None
    """Effect of showing it; null if no experiment compared campaigns with and without it."""

    @classmethod
    def of(cls, tries: Sequence[Try], effect: Effect | None = None) -> HitRate:
        """Compute the hit rate of tries; the rule of demotion is only here."""
        accepted = sum(attempt.verdict.accepted for attempt in tries)
        unexplained = sum(attempt.unexplained for attempt in tries)
        gains = [attempt.gain for attempt in tries if attempt.gain is not None and not attempt.unexplained]
        operators = {attempt.operator for attempt in tries}
        failing = accepted == unexplained and len(tries) >= DEMOTED_AFTER and len(operators) >= DEMOTED_ON
        unproven = "none accepted for its reason" if accepted else "none accepted"
        reason = f"{len(tries)} tries on {len(operators)} operators, {unproven}" if failing else None
        return cls(
            tried=len(tries),
            accepted=accepted,
            unexplained=unexplained,
            measured=len(gains),
            median_gain=median(gains) if gains else None,
            demoted=reason or (effect.refutation if effect else None),
            tries=tuple(sorted(tries, key=lambda attempt: attempt.record)),
            effect=effect,
        )

    @property
    def share_interval(self) -> Interval | None:
        """95 % interval of the share of tries that were accepted, by Wilson's score; null without tries."""
        if not self.tried:
            return None
        z, n, share = NormalDist().inv_cdf(0.975), self.tried, self.accepted / self.tried
        middle, room = share + z**2 / (2 * n), z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
        low, high = ((middle + side * room) / (1 + z**2 / n) for side in (-1, 1))
        return Interval(low=max(0.0, low), high=min(1.0, high))

    @property
    def gain(self) -> str:
        """Median gain with the number of tries: `+13.6 % (2 tries)`, `-`."""
        if self.median_gain is None:
            return "-"
        return f"{100 * self.median_gain:+.1f} % ({self.measured} {'tries' if self.measured > 1 else 'try'})"

    @property
    def text(self) -> str:
        """Hit rate in one line: `tried 3, accepted 2, median gain +13.6 % (3 tries)`."""
        effect = f"; effect {self.effect.text}" if self.effect else ""
        unknown = f" ({self.unexplained} for a reason unknown)" if self.unexplained else ""
        return f"tried {self.tried}, accepted {self.accepted}{unknown}, median gain {self.gain}{effect}"


class SymptomRow(Model):
    """A complaint of an engineer in plain words, with the entries that deal with it."""

    title: str
    """Title in the words of an engineer: `Occupancy is low`."""
    also: tuple[str, ...] = ()
    """Other names; a search that contains the words of one of them matches this row."""
    means: str
    """Cause, in a sentence or two."""
    shows: dict[str, str] = Field(min_length=1)
    """Metrics that show it, each with its typical value: `near its ceiling`."""
    optimizations: tuple[Slug, ...] = ()
    """Optimizations to try, the likeliest first."""
    anti_patterns: tuple[Slug, ...] = ()
    """Anti-patterns to rule out."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _refuse_unknown(self.shows)
        if not self.entries:
            raise ValueError(f"the symptom `{self.title}` names no entry")
        return self

    def without(self, ids: Collection[str]) -> SymptomRow:
        """Return the row without some entries; it may be left with none."""
        lists = {name: getattr(self, name) for name in ("optimizations", "anti_patterns")}
        return self.model_copy(
            update={name: tuple(id for id in entries if id not in ids) for name, entries in lists.items()}
        )

    @property
    def entries(self) -> tuple[str, ...]:
        """All entries that it leads to, those to try first."""
        return (*self.optimizations, *self.anti_patterns)


class SymptomTable(Model):
    """The symptom table of one knowledge folder: its `symptoms.yaml`."""

    symptoms: tuple[SymptomRow, ...]
    """Rows in the order in which pages show them."""

    @model_validator(mode="after")
    def _unique_titles(self) -> Self:
        titles = [symptom.title for symptom in self.symptoms]
        repeated = sorted({title for title in titles if titles.count(title) > 1})
        if repeated:
            raise ValueError(f"the symptom `{repeated[0]}` appears twice")
        return self


class SynonymTable(Model):
    """The table of synonyms of one knowledge folder: its `synonyms.yaml`."""

    synonyms: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...]
    """Groups of phrases that mean the same in a search; a phrase has up to four words."""


class Approach(Model):
    """A public kernel and what makes it fast, at a pinned commit."""

    text: str = Field(min_length=20, max_length=220)
    """One sentence on what the kernel does that makes it fast."""
    source: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    """Repository on GitHub, `owner/name`."""
    path: str = Field(min_length=1)
    """File in the repository."""
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    """Commit at which the file was read."""

    @property
    def url(self) -> str:
        """Address of the file at this commit."""
        return f"https://github.com/{self.source}/blob/{self.commit}/{self.path}"


class PriorArt(Model):
    """The fastest known public approaches to a family of operators."""

    family: Slug
    """Family of operators, as a definition's `op_type` names it."""
    title: str
    """Operators of the family in plain words."""
    words: tuple[str, ...] = Field(min_length=1)
    """Phrases in an operator's name or description that belong to the family."""
    approaches: tuple[Approach, ...] = Field(min_length=1, max_length=5)
    """Approaches, the fastest known first."""
    checked: date
    """Day on which they were read."""
    until: date
    """Day after which the claim has to be looked at again."""


class PriorArtTable(Model):
    """The table of prior art of one knowledge folder: its `prior-art.yaml`."""

    prior_art: tuple[PriorArt, ...]
    """One row a family."""


def _refuse_unknown(metrics: Iterable[str]) -> None:
    unknown = [metric for metric in metrics if metric not in METRICS]
    if unknown:
        raise ValueError(f"unknown metrics {unknown}; known: {', '.join(METRICS)}")
