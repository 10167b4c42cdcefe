"""Profiles that the lab keeps: printed for people and agents, and compared with a profiler's answer."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from warpsmith.campaign.rounds.evaluate import are_comparable
from warpsmith.core.profile import Metric, Opportunity, Profile, Stage
from warpsmith.reporting import facts, format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpsmith.campaign.rounds.state import CampaignState
    from warpsmith.driver.answers.models import ProfileAnswer

STAGES, CHANGES, ADVICE = 6, 8, 2
"""Slowest stages, changed metrics and findings of the profiler's own that are printed; the file has all."""

NOTHING = "Nothing that this profile can name."
"""Line in place of the opportunities where there are none."""

_TIME = "_us"
"""Ending of metrics that are times."""

_STAGE_HEAD = "| Stage | Duration | TC% | DRAM% | Occ% | Bottleneck | Key issue |\n" + "| --- " * 7 + "|"
_CHANGE_HEAD = "| Metric | Before | Now | Change |\n" + "| --- " * 4 + "|"


def describe_profile(profile: Profile, op: str, target: str, state: CampaignState | None) -> str:
    """Describe a profile as Markdown: its evidence, where it is kept, and what it says.

    Args:
        profile: the profile.
        op: its operator.
        target: its device kind.
        state: the campaign's state with the profile kept in it; None outside of a campaign.
    """
    before = profile_before(state, profile) if state else None
    changes = sorted(_changes(profile, before), key=lambda change: -change.relative)[:CHANGES] if before else []
    sections = [
        "\n".join(_head(profile, state)),
        f"## Profile: {op} {_version(profile)} on {target}",
        "\n".join([_STAGE_HEAD, *map(_stage_row, profile.stages[:STAGES])])
        if profile.stages
        else "No stage was timed.",
        f"**Bottleneck: {profile.bottleneck}.** {format.inline(profile.root_cause)}",
        "\n".join(map(_opportunity_item, profile.opportunities)) or NOTHING,
        "\n".join([_CHANGE_HEAD, *map(_change_row, changes)]) if changes else "",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def open_profile(state: CampaignState, version: str) -> tuple[str, Profile] | None:
    """Return the open round's profile of a version after the name of its step, or None if there is none."""
    steps = {"profile": state.current_profile, "profile_after": state.open.profile_after}
    return next(((step, p) for step, p in steps.items() if p is not None and _version(p) == version), None)


def profile_before(state: CampaignState, profile: Profile) -> Profile | None:
    """Return the profile of the version that this profile's version was made from, or None."""
    version = _version(profile)
    current = open_profile(state, version)
    if current and current[0] == "profile_after":
        return state.open.profile
    return next((record.profile for record in state.records if record.solution == version), None)


def list_differences(answer: ProfileAnswer, profile: Profile) -> list[str]:
    """List the values of an answer that differ from the kept profile by more than the rounding of their digits."""
    differences = []
    if profile.opportunities and not answer.opportunities:
        differences.append("`opportunities`: the kept profile has some; repeat those that the source confirms.")
    claims = [(f"opportunities.{i}", o.trigger.name, o.trigger.value) for i, o in enumerate(answer.opportunities)]
    claims += [(f"changes.{i}", change.metric, change.after) for i, change in enumerate(answer.changes)]
    for field, metric, value in claims:
        measured = profile.value(metric)
        if measured is None:
            differences.append(
                f"`{field}`: {metric} was not measured; take a metric that `warpsmith profile --json` lists."
            )
        elif not _agrees(value, measured):
            differences.append(
                f"`{field}`: {metric} is {value:g}, but {measured:g} in the kept profile; write that."
            )
    return differences


def _version(profile: Profile) -> str:
    return f"{profile.language}/{profile.version}"


def _head(profile: Profile, state: CampaignState | None) -> Iterator[str]:
    evidence = facts.EVIDENCE[profile.evidence] + (f" at {profile.workload}" if profile.workload else "")
    yield f"Evidence: {'; '.join(filter(None, (evidence, profile.without)))}."
    if profile.load:
        yield f"Machine: {profile.load}, so its times are too long, and scaling over threads was not measured."
    yield f"Kept: {_kept_in(state, profile)}."
    if profile.advice:
        yield f"Advice: {'; '.join(format.plain(text, 120) for text in profile.advice[:ADVICE])}."
    if state and profile.details:
        yield f"Report: {profile.details}."
    if (hidden := len(profile.stages) - STAGES) > 0:
        yield f"Shown: the {STAGES} slowest stages; {hidden} more are faster."


def _kept_in(state: CampaignState | None, profile: Profile) -> str:
    current = open_profile(state, _version(profile)) if state else None
    if state is None or current is None:
        return profile.details or "nowhere, no campaign waits for this profile"
    return state.campaign.project.relative(state.campaign.open / f"{current[0]}.json")


def _stage_row(stage: Stage) -> str:
    shares = (stage.tensor_pct, stage.dram_pct, stage.occupancy_pct)
    cells = (format.ABSENT if share is None else f"{share:.1f}".removesuffix(".0") for share in shares)
    name, issue = (format.inline(format.plain(text, 80)) for text in (stage.name, stage.issue))
    return f"| {' | '.join((name, format.seconds(stage.seconds), *cells, stage.bottleneck, issue))} |"


def _opportunity_item(opportunity: Opportunity) -> str:
    trigger = f"{opportunity.trigger.name}={_rounded(opportunity.trigger)}"
    entry = f"; entry {opportunity.entry}" if opportunity.entry else ""
    gain = f"{min(opportunity.gain_pct, 100.0):.1f}".removesuffix(".0")
    return f"- {format.inline(opportunity.name)}: at most {gain} %; {trigger}{entry}"


class _MetricDelta(NamedTuple):
    """A metric that changed, with the digits that are printed."""

    metric: str
    before: Decimal
    after: Decimal

    @property
    def relative(self) -> Decimal:
        return abs(self.after - self.before) / (abs(self.before) or 1)


def _changes(profile: Profile, before: Profile) -> Iterator[_MetricDelta]:
    """Yield the metrics that changed. Times are left out: times of two sessions do not compare."""
    earlier = {metric.name: metric for metric in before.metrics}
    for metric in profile.metrics:
        old = earlier.get(metric.name)
        if old is None or metric.name.endswith(_TIME) or not are_comparable(metric.name, before, profile):
            continue
        if _rounded(old) != _rounded(metric):
            yield _MetricDelta(metric.name, _rounded(old), _rounded(metric))


def _change_row(change: _MetricDelta) -> str:
    return f"| {change.metric} | {change.before} | {change.after} | {change.after - change.before:+} |"


def _rounded(metric: Metric) -> Decimal:
    return Decimal(str(int(metric.value)) if metric.value.is_integer() else format.digits(metric.value))


def _decimal(value: float) -> Decimal:
    """Return a number with the digits that it was written with."""
    return Decimal(int(value)) if value.is_integer() else Decimal(repr(value))


def _agrees(written: float, measured: float) -> bool:
    digits = _decimal(written)
    exponent = digits.as_tuple().exponent
    half = Decimal(5).scaleb(exponent - 1) if isinstance(exponent, int) else Decimal(0)
    # A little more than half a unit: a tie may have been rounded either way.
    return abs(Decimal(repr(measured)) - digits) <= half * Decimal("1.001")
