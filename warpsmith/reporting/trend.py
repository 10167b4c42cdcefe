"""The performance trend: one row a round."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.core.campaign import Manifest, RoundRecord
from warpsmith.reporting import facts
from warpsmith.reporting.templating import fill


def page(manifest: Manifest, rounds: Sequence[RoundRecord]) -> str:
    """`performance_trend.md`."""
    return fill("trend", manifest=manifest, rounds=rounds, first=facts.baseline(rounds))
