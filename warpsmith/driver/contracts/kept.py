"""A profile that the lab keeps, as its contract: printed for agents, and compared with what one hands back."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from warpsmith.campaign.rounds.evaluate import comparable
from warpsmith.core.profile import Metric, Opportunity, Profile, Stage
from warpsmith.driver.contracts.models import Chance, Moved, ProfileContract, StageRow
from warpsmith.driver.contracts.profile import AGAINST, OPPORTUNITIES, write
from warpsmith.reporting import facts, format

if TYPE_CHECKING:
    from warpsmith.campaign.rounds.state import State

STAGES, ROWS, QUOTED = 6, 8, 2
"""Slowest stages, changed metrics and findings of the profiler's own that are printed; the kept file has all."""

_CLOCK = "_us"


def contract(profile: Profile, op: str, target: str, before: Profile | None = None) -> ProfileContract:
    """A profile as its contract, against the one of the version before where there is one."""
    return ProfileContract(
        op=op,
        version=_version(profile),
        target=target,
        stages=tuple(_row(stage) for stage in profile.stages[:STAGES]),
        bottleneck=profile.bottleneck,
        root_cause=format.plain(profile.root_cause),
        opportunities=tuple(_chance(found) for found in profile.opportunities),
        compared=tuple(sorted(_moved(profile, before), key=_far))[:ROWS] if before else (),
    )


def printed(profile: Profile, op: str, target: str, now: State | None) -> str:
    """What `warpsmith profile` prints: what it rests on and where it is kept, then the contract.

    `now` is the campaign's state with the profile kept in it; None outside of a campaign.
    """
    hidden = len(profile.stages) - STAGES
    lines = [
        f"Evidence: {'; '.join(filter(None, (_evidence(profile), profile.without)))}.",
        f"Kept: {_place(now, profile)}.",
        *(
            [f"Beside it: {'; '.join(format.plain(one, 120) for one in profile.advice[:QUOTED])}."]
            if profile.advice
            else []
        ),
        *([f"Report: {profile.details}."] if now and profile.details else []),
        *([f"Shown: the {STAGES} slowest stages; {hidden} more are faster."] if hidden > 0 else []),
    ]
    before = previous(now, profile) if now else None
    return "\n".join([*lines, "", write(contract(profile, op, target, before))])


def kept(now: State, version: str) -> tuple[str, Profile] | None:
    """The open round's profile of a version and the step that keeps it; None where there is none."""
    steps = {"profile": now.open.profile, "profile_after": now.open.profile_after}
    return next(((name, p) for name, p in steps.items() if p is not None and _version(p) == version), None)


def previous(now: State, profile: Profile) -> Profile | None:
    """The profile of the version that a version was made from."""
    version = _version(profile)
    found = kept(now, version)
    if found and found[0] == "profile_after":
        return now.open.profile
    return next((record.profile for record in now.records if record.solution == version), None)


def strange(handed: ProfileContract, profile: Profile) -> list[str]:
    """Numbers that are not those of the kept profile, within the digits that were printed."""
    claims = [(OPPORTUNITIES, chance.metric, chance.value) for chance in handed.opportunities]
    claims += [(AGAINST, moved.metric, moved.now) for moved in handed.compared if moved.now is not None]
    found = []
    for section, metric, value in claims:
        measured = profile.value(metric)
        if measured is None:
            what, fix = "was not measured", "take a metric that `warpsmith profile --json` lists"
        elif not _agrees(value, measured):
            what, fix = f"is {measured:g} in the kept profile", "write that"
        else:
            continue
        found.append(f"{section}: {metric}={value}, but it {what}. Fix: {fix}.")
    return found


def _version(profile: Profile) -> str:
    return f"{profile.language}/{profile.version}"


def _evidence(profile: Profile) -> str:
    return facts.EVIDENCE[profile.evidence] + (f" at {profile.workload}" if profile.workload else "")


def _place(now: State | None, profile: Profile) -> str:
    found = kept(now, _version(profile)) if now else None
    if now is None or found is None:
        return profile.details or "nowhere, no campaign waits for this profile"
    return now.campaign.project.relative(now.campaign.open / f"{found[0]}.json")


def _row(stage: Stage) -> StageRow:
    return StageRow(
        name=format.plain(stage.name, 80),
        seconds=stage.seconds,
        tensor_pct=stage.tensor_pct,
        dram_pct=stage.dram_pct,
        occupancy_pct=stage.occupancy_pct,
        bottleneck=stage.bottleneck,
        issue=format.plain(stage.issue, 80),
    )


def _chance(found: Opportunity) -> Chance:
    return Chance(
        name=format.plain(found.name).replace(" -- ", ", "),
        gain_pct=min(found.gain_pct, 100.0),
        metric=found.trigger.name,
        value=_printed(found.trigger),
        entry=found.entry,
    )


def _moved(profile: Profile, before: Profile) -> list[Moved]:
    """What changed; times are left out, since two sessions' times do not compare: the verdict has them."""
    rows = []
    for metric in profile.metrics:
        old = next((found for found in before.metrics if found.name == metric.name), None)
        if old is None or metric.name.endswith(_CLOCK) or not comparable(metric.name, before, profile):
            continue
        then, now = _printed(old), _printed(metric)
        if then != now:
            rows.append(Moved(metric=metric.name, before=then, now=now, change=now - then))
    return rows


def _far(moved: Moved) -> float:
    """Orders rows by how far a metric moved, the farthest first."""
    before = float(moved.before or 0)
    return -abs(float(moved.change or 0)) / (abs(before) or 1.0)


def _printed(metric: Metric) -> Decimal:
    return Decimal(str(int(metric.value)) if metric.value.is_integer() else format.digits(metric.value))


def _agrees(printed: Decimal, measured: float) -> bool:
    exponent = printed.as_tuple().exponent
    half = Decimal(5).scaleb(exponent - 1) if isinstance(exponent, int) else Decimal(0)
    # A little more than half a unit: a tie may have been rounded either way.
    return abs(Decimal(repr(measured)) - printed) <= half * Decimal("1.001")
