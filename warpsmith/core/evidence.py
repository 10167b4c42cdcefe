"""Evidence: validity of records for the files that they judged, and results of reruns."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Evaluation


class Claim(StrEnum):
    """Result for a record's claim after its version was judged again."""

    HOLDS = "HOLDS"
    WEAKER = "WEAKER"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


class Rerun(Model):
    """Rerun of a record's judgement: `reruns/<record>-<n>.json`. The record itself never changes."""

    record: str
    """Path of the record in the project."""
    record_sha256: Sha256
    """SHA-256 of the record's file."""
    claim: Claim
    """Result for the record's claim."""
    reason: str
    """Reason in one sentence."""
    evaluation: Evaluation
    """Evaluation of the rerun."""


class Retiming(Model):
    """Time of a best version, taken again after judgements that found it slower than when it was accepted:
    `retimings/<round>-<n>.json`."""

    record: str
    """Path in the project of the round that accepted the version."""
    record_sha256: Sha256
    """SHA-256 of that record's file."""
    answers: tuple[int, ...]
    """Seeds of the INVALID judgements that it answers; none if the machine was busy or failed."""
    taken: bool
    """True if later judgements hold the version against this time."""
    reason: str
    """Reason in one sentence."""
    evaluation: Evaluation
    """Judgement of the version as a candidate, beside the reference alone."""


class Stale(Model):
    """Evidence that is no longer valid."""

    path: str
    """Path of the record or page."""
    message: str
    """The problem, its location and its cure, in one sentence."""


class UnsupportedText(Model):
    """Fault by today's rule in a text by an agent, in a record from before such texts were checked."""

    record: str
    """Path of the record in the project."""
    message: str
    """The fault in one sentence."""


class Older(Model):
    """A valid record by an older gate."""

    record: str
    """Path of the record in the project, as `warpsmith evidence rerun` takes it."""
    solution: str
    """Path of the version's file."""
    gate_version: int
    """Version of the gate that judged it."""
    best: bool
    """True if the version is its campaign's best one."""
    renewed: Rerun | None = None
    """Latest conclusive rerun by the current gate; null if there is none."""


class OtherToolchain(Model):
    """Best versions that were judged under other libraries than those that are here."""

    differences: str
    """Libraries of then, and of now in brackets."""
    records: tuple[str, ...]
    """Paths of the records in the project, as `warpsmith evidence rerun` takes them."""


class Standing(Model):
    """State of a project's evidence."""

    rounds: int = Field(ge=0)
    """Number of valid round records."""
    races: int = Field(ge=0)
    """Number of final races of campaigns."""
    verdicts: int = Field(ge=0)
    """Number of verdicts outside campaigns; of several on one version only the last counts."""
    maps: int = Field(default=0, ge=0)
    """Number of maps; of several of one operator on one machine only the last counts."""
    citations: int = Field(ge=0)
    """Number of references from pages to a campaign's file, and from entries to a record."""
    stale: tuple[Stale, ...]
    """Invalid evidence in order of path; empty if there is none."""
    older: tuple[Older, ...]
    """Records by an older gate, in order of path; they are not errors."""
    unsupported: tuple[UnsupportedText, ...] = ()
    """Faults in texts of records from before the rule, in order of path; they are not errors."""
    toolchains: tuple[OtherToolchain, ...] = ()
    """Best versions of other toolchains; they are not errors."""
