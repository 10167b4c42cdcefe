"""A round's page: hypothesis, change, prediction, results, decision, lesson, and what it can be traced by."""

from __future__ import annotations

from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evidence import Rerun
from warpsmith.reporting.templating import fill


def page(record: RoundRecord, again: Rerun | None = None) -> str:
    """`rounds/<NNN>/summary.md`; `again` is what judging its version again said last."""
    return fill("summary", record=record, again=again)
