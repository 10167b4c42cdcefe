"""A round's page: hypothesis, change, prediction, results, decision, lesson, and what it can be traced by."""

from __future__ import annotations

from warpsmith.core.campaign import RoundRecord
from warpsmith.reporting.templating import fill


def page(record: RoundRecord) -> str:
    """`rounds/<NNN>/summary.md`."""
    return fill("summary", record=record)
