"""Firewall: earlier work on an operator is hidden from the agents of a campaign that does not build on it.

An entry of the knowledge stays visible; its evidence from that operator does not. Nothing can hide a file from a
shell, so a read that a hook sees is recorded, and the campaign counts as contaminated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from warpsmith.campaign.earlier_work import READS, EarlierWork
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Minute, Model, this_minute

if TYPE_CHECKING:
    from warpsmith.core.knowledge import HitRate
    from warpsmith.knowledge.entry import Entry

_REFINEMENT = r"\*\*(?:Refined|Refuted) [^\n]*`{record}[^\n]*\n\n[^\n]+\n?"


class EarlierRead(Model):
    """Read of earlier work during a campaign that hides it."""

    path: str
    """File or folder that was read, relative to the project."""
    reader: str
    """Agent that read it; `main` for the session itself."""
    at: Minute
    """Time in UTC."""


@dataclass(frozen=True)
class Firewall:
    """Filter of what a campaign's agents see."""

    campaign: Campaign
    """Campaign that hides earlier work."""

    def hides_record(self, record: str) -> bool:
        """Return True for the path of a record of another campaign on the operator."""
        operator, own = self._prefixes()
        return record.startswith(operator) and not record.startswith(own)

    def visible_rate(self, rate: HitRate | None) -> HitRate | None:
        """Return a hit rate without the tries of earlier work; None if no try is left."""
        tries = [attempt for attempt in rate.tries if not self.hides_record(attempt.record)] if rate else []
        return rate.of(tries) if rate and tries else None

    def visible_entry(self, entry: Entry) -> Entry:
        """Return an entry without its evidence, tries and refinements that come from earlier work."""
        evidence = tuple(item for item in entry.matter.evidence if not self.hides_record(item.record or ""))
        return entry.model_copy(
            update={
                "matter": entry.matter.model_copy(update={"evidence": evidence}),
                "sections": {name: self.visible_text(text) for name, text in entry.sections.items()},
                "hit_rate": self.visible_rate(entry.hit_rate),
            }
        )

    def visible_text(self, page: str) -> str:
        """Return an entry's page without the evidence and the refinements that come from earlier work."""
        operator, own = map(re.escape, self._prefixes())
        record = rf"(?!{own}){operator}"
        page = re.sub(_REFINEMENT.format(record=record), "", page)
        hidden = re.compile(rf"^\|.*\| {record}|^\s*- \{{source: local, record: {record}")
        return "".join(line for line in page.splitlines(keepends=True) if not hidden.search(line))

    def _prefixes(self) -> tuple[str, str]:
        """Return the beginnings of the paths of all records on the operator, and of the campaign's own."""
        project, folder = self.campaign.project, self.campaign.folder
        return f"{project.relative(folder.parent)}/", f"{project.relative(folder)}/"


def campaign_firewall(campaign: Campaign | None) -> Firewall | None:
    """Return the firewall of a campaign; None without a campaign, or if it builds on earlier work."""
    return Firewall(campaign) if campaign and campaign.manifest.earlier_work == "hidden" else None


def visibility_line(campaign: Campaign) -> str:
    """Return the brief's line about earlier work; empty if there is none."""
    op = campaign.manifest.target_op
    work = EarlierWork(campaign.project, op, campaign.folder).describe()
    if not work:
        return ""
    if campaign.manifest.earlier_work == "visible":
        return f"Earlier work on {op} is visible: {work}."
    return (
        f"Earlier work on {op} is hidden: {work}. Open none of it, in no folder and no commit. A read marks the"
        " campaign as contaminated."
    )


def read_reads(campaign: Path) -> tuple[EarlierRead, ...]:
    """Return the reads of earlier work that were recorded in a campaign's folder; a damaged line counts as one."""
    log = campaign / READS
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    return tuple(map(_parse_read, lines))


def _parse_read(line: str) -> EarlierRead:
    try:
        return EarlierRead.model_validate_json(line)
    except ValidationError:
        return EarlierRead(path="an unreadable line", reader="unknown", at=this_minute())
