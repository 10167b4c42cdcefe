"""Evidence: whether records still stand for the files that they judged, and what judging one again said."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Evaluation


class Claim(StrEnum):
    """What became of a record's claim when its version was judged again."""

    HOLDS = "HOLDS"
    WEAKER = "WEAKER"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


class Rerun(Model):
    """A record's version, judged again: `reruns/<record>-<n>.json`. The record itself never changes."""

    record: str
    """The record's path in the project."""
    record_sha256: Sha256
    """Hash of the record's file."""
    claim: Claim
    """What became of its claim."""
    reason: str
    """One sentence with what decided."""
    evaluation: Evaluation
    """The new judgement."""


class Stale(Model):
    """Evidence that no longer holds."""

    path: str
    """The record or page."""
    message: str
    """What is wrong, where, and what to do, in one sentence."""


class Older(Model):
    """A sound record that an older gate made."""

    record: str
    """Its path in the project: what `warpsmith evidence rerun` takes."""
    solution: str
    """The version's file."""
    gate_version: int
    """The gate that judged it."""
    best: bool
    """Whether the version is its campaign's best one."""
    renewed: Rerun | None = None
    """The last time that this gate judged it again and could say; null: it did not."""


class Standing(Model):
    """How a project's evidence stands."""

    rounds: int = Field(ge=0)
    """Round records that read."""
    races: int = Field(ge=0)
    """Final races of campaigns."""
    verdicts: int = Field(ge=0)
    """Verdicts outside of campaigns; of several on one version only the last counts."""
    citations: int = Field(ge=0)
    """Times that a page names a file of a campaign, or an entry a record."""
    stale: tuple[Stale, ...]
    """In order of path; empty: all is well."""
    older: tuple[Older, ...]
    """Records of an older gate, in order of path; none of them is an error."""
