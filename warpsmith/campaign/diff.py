"""Comparison of two versions' profiles: the metrics that changed, and whether the plan's did as predicted."""

from __future__ import annotations

from warpsmith.campaign.history import solutions
from warpsmith.campaign.rounds.evaluate import are_comparable
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Movement
from warpsmith.core.profile import Profile
from warpsmith.errors import MissingInput


class MetricChange(Model):
    """One metric of two versions."""

    metric: str
    """A name of `warpsmith.core.metrics.METRICS`."""
    before: float
    """Value on the first version."""
    after: float
    """Value on the second version."""

    @property
    def change(self) -> float:
        """Difference of the two values."""
        return self.after - self.before


class ProfileDiff(Model):
    """Two profiles of a campaign, compared."""

    before: str
    """Name of the first version, such as `triton/v3`."""
    after: str
    """Name of the second version."""
    evidence: tuple[str, str]
    """Kind of evidence behind each profile."""
    moved: tuple[MetricChange, ...]
    """Metrics that differ, the largest relative change first."""
    movement: Movement | None
    """Movement of the plan's metric; null unless the second version was made from the first."""


def compare_profiles(state: CampaignState, first: str, second: str) -> ProfileDiff:
    """Compare the recorded profiles of two versions, each named as `triton/v3` or `v3` in the campaign's language.

    Raises:
        Misuse: a name is no version.
        MissingInput: one of them has no profile in this campaign.
    """
    names = [
        name if "/" in name else f"{state.campaign.manifest.target_language}/{name}" for name in (first, second)
    ]
    before, after = (_profile(state, name) for name in names)
    later = {metric.name: metric.value for metric in after.metrics}
    pairs = [
        MetricChange(metric=metric.name, before=metric.value, after=later[metric.name])
        for metric in before.metrics
        if later.get(metric.name, metric.value) != metric.value and are_comparable(metric.name, before, after)
    ]
    created = next((record for record in state.records if record.solution == names[1]), None)
    return ProfileDiff(
        before=names[0],
        after=names[1],
        evidence=(before.evidence, after.evidence),
        moved=tuple(sorted(pairs, key=lambda m: -abs(m.change) / (abs(m.before) or 1.0))),
        movement=created.outcome.movement if created and created.parent == names[0] else None,
    )


def _profile(state: CampaignState, name: str) -> Profile:
    solutions.parse_version_name(name)
    opened = (state.open.profile_after, state.open.profile)
    recorded = (profile for record in state.records for profile in (record.profile_after, record.profile))
    profile = next(
        (p for p in (*opened, *recorded) if p is not None and f"{p.language}/{p.version}" == name), None
    )
    if profile is None:
        raise MissingInput(
            f"{state.campaign.name} has no profile of {name}; `warpsmith status` lists its versions."
        )
    return profile
