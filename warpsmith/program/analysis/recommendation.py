"""Recommendations from shares: impact and bound follow from the share that each attacks."""

from __future__ import annotations

from collections.abc import Iterator

from warpsmith.profiling.trace.rank import LEAST_SHARE
from warpsmith.program.analysis.models import Level, Recommendation, amdahl_bound, impact_level


def recommend_if_worthwhile(
    title: str,
    entry: str | None,
    share: float,
    effort: Level,
    risk: Level,
    evidence: str,
    task: str,
    lines: tuple[str, ...] = (),
) -> Iterator[Recommendation]:
    """Yield the recommendation if it attacks at least `LEAST_SHARE` of the step."""
    if share >= LEAST_SHARE:
        yield build_recommendation(title, entry, share, effort, risk, evidence, task, lines=lines)


def build_recommendation(
    title: str,
    entry: str | None,
    share: float,
    effort: Level,
    risk: Level,
    evidence: str,
    task: str,
    level: Level | None = None,
    *,
    subject: str = "",
    lines: tuple[str, ...] = (),
    packages: tuple[str, ...] = (),
    specialist: str = "program",
) -> Recommendation:
    """Return a recommendation with its impact and bound; `level` is its impact, by default that of its share."""
    return Recommendation(
        title=title,
        entry=entry,
        impact=level or impact_level(share),
        share=share,
        ceiling=amdahl_bound(share),
        effort=effort,
        risk=risk,
        specialist=specialist,
        evidence=evidence,
        task=task,
        subject=subject,
        lines=lines,
        packages=packages,
    )
