"""Diff: which metrics moved between two versions of a campaign, and whether the plan's moved as predicted."""

from __future__ import annotations

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds.evaluate import are_comparable
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Movement
from warpsmith.core.profile import Profile
from warpsmith.errors import MissingInput


class MetricChange(Model):
    """One metric of both versions."""

    metric: str
    """A name of `warpsmith.core.metrics.METRICS`."""
    before: float
    """On the first version."""
    after: float
    """On the second."""

    @property
    def change(self) -> float:
        """By how much."""
        return self.after - self.before


class ProfileDiff(Model):
    """Two profiles of a campaign, compared."""

    before: str
    """The first version, as `language/v3`."""
    after: str
    """The second."""
    evidence: tuple[str, str]
    """What each profile rests on."""
    moved: tuple[MetricChange, ...]
    """Metrics that both have and that differ, the largest relative change first."""
    movement: Movement | None
    """The plan's metric, where the second version was made from the first."""


def compare_profiles(now: CampaignState, first: str, second: str) -> ProfileDiff:
    """Compare the kept profiles of two versions, each as `triton/v3` or `v3` in the campaign's language.

    Raises:
        Misuse: a name is no version.
        MissingInput: one of them has no profile in this campaign.
    """
    names = [
        name if "/" in name else f"{now.campaign.manifest.target_language}/{name}" for name in (first, second)
    ]
    before, after = (_profile(now, name) for name in names)
    later = {metric.name: metric.value for metric in after.metrics}
    pairs = [
        MetricChange(metric=metric.name, before=metric.value, after=later[metric.name])
        for metric in before.metrics
        if later.get(metric.name, metric.value) != metric.value and are_comparable(metric.name, before, after)
    ]
    made = next((record for record in now.records if record.solution == names[1]), None)
    return ProfileDiff(
        before=names[0],
        after=names[1],
        evidence=(before.evidence, after.evidence),
        moved=tuple(sorted(pairs, key=lambda m: -abs(m.change) / (abs(m.before) or 1.0))),
        movement=made.outcome.movement if made and made.parent == names[0] else None,
    )


def _profile(now: CampaignState, name: str) -> Profile:
    solutions.parse_version_name(name)
    opened = (now.open.profile_after, now.open.profile)
    kept = (profile for record in now.records for profile in (record.profile_after, record.profile))
    found = next((p for p in (*opened, *kept) if p is not None and f"{p.language}/{p.version}" == name), None)
    if found is None:
        raise MissingInput(
            f"{now.campaign.name} keeps no profile of {name}; `warpsmith status` lists its versions."
        )
    return found
