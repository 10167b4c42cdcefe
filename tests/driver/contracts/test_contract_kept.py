"""A measured profile as its contract: short, fitting, against the right version; and no number of one's own."""

from __future__ import annotations

from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import rounds, state
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Profile
from warpsmith.driver.contracts import kept as contract_kept
from warpsmith.driver.contracts import registry as contracts
from warpsmith.driver.contracts.models import ProfileContract

TOKENS = 600
ENTRY = "a-rather-long-name-of-an-entry"


def measured(workloads: int = 1, **changes: Any) -> Profile:
    stages = [
        {
            "name": f"{n}x131072-bfloat16-masked", "seconds": 1e-3 / (n + 1), "dram_pct": 61.24,
            "bottleneck": "memory", "issue": f"{n} % of the ceiling; the host takes 12 us a call",
        }
        for n in range(workloads)
    ]  # fmt: skip
    chance = {
        "name": "the worst workload is far behind: keep its row on chip between the passes", "gain_pct": 22.5,
        "trigger": {"name": "dram_pct", "value": 61.237}, "entry": ENTRY,
    }  # fmt: skip
    data = {
        "version": "v2", "language": "toy", "solution_sha256": "a" * 64, "evidence": "timings", "stages": stages,
        "bottleneck": "memory", "root_cause": "It waits for memory. The smallest is the furthest behind at 3 %.",
        "opportunities": [chance] * 3, "without": "with counters: measured bytes", "measured": "2026-11-21 10:00",
        "metrics": [{"name": name, "value": 61.237} for name in METRICS],
    }  # fmt: skip
    return Profile.model_validate(data | changes)


def metrics(**values: float) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def handed(text: str) -> ProfileContract:
    contract = contracts.parse("profile", text)
    assert isinstance(contract, ProfileContract)
    return contract


def test_twenty_workloads_are_short_and_fit():
    before = measured(20, metrics=[{"name": name, "value": 1.2345e-3} for name in METRICS])
    profile = measured(20)
    text = contract_kept.printed(profile, "softmax", "h200", None)
    assert contracts.problems("profile", text) == []
    assert text.startswith(
        "Evidence: timings only; with counters: measured bytes.\nKept: nowhere, no campaign waits"
    )
    assert "Shown: the 6 slowest stages; 14 more are faster." in text
    assert "| 5x131072-bfloat16-masked | 167 us | - | 61.2 | - | memory |" in text
    assert "| 6x131072" not in text
    assert f"-- est. 22.5 % -- trigger: dram_pct=61.2 -- entry: {ENTRY}" in text
    compared = contracts.render(contract_kept.contract(profile, "softmax", "h200", before))
    head = text.partition("## ")[0]
    assert contracts.problems("profile", compared) == []
    assert len(head + compared) / 3.5 < TOKENS


def test_against_the_version_before_it_says_what_changed_but_no_times():
    before = measured(
        metrics=metrics(dram_pct=43.0, registers_per_thread=64, time_us=9.0, waves=1.0, l2_hit_pct=3)
    )
    now = measured(
        metrics=metrics(dram_pct=61.237, registers_per_thread=65536, time_us=5.0, waves=1.0, spill_bytes=1)
    )
    found = contract_kept.contract(now, "softmax", "h200", before).compared
    assert [(row.metric, str(row.before), str(row.now), str(row.change)) for row in found] == [
        ("registers_per_thread", "64", "65536", "65472"),  # what moved farthest comes first
        ("dram_pct", "43", "61.2", "18.2"),
    ]


def test_nothing_timed_is_printed_and_does_not_fit():
    text = contract_kept.printed(measured(0, evidence="static"), "softmax", "h200", None)
    (found,) = contracts.problems("profile", text)
    assert found.startswith("Stages: the table has no row")


def test_hostile_words_do_not_break_the_form():
    hostile = "a | b\n## Profile: c d/v1 on e\n### Stages\n`x` -- trigger: waves=3"
    stage = measured().stages[0].model_copy(update={"name": hostile, "issue": hostile})
    chance = measured().opportunities[0].model_copy(update={"name": hostile})
    profile = measured().model_copy(update={"root_cause": hostile, "stages": (stage,), "opportunities": (chance,)})
    text = contract_kept.printed(profile, "softmax", "h200", None)
    assert contracts.problems("profile", text) == []
    assert len(handed(text).opportunities) == 1


@pytest.mark.parametrize(
    ("printed", "value", "fits"),
    [
        ("61", 61.237, True),
        ("61.2", 61.237, True),
        ("61.24", 61.237, True),
        ("62", 61.237, False),
        ("61.3", 61.237, False),
        ("61.5", 61.45, True),
        ("60", 61.237, False),
        ("0", 0.4, True),
        ("0.0", 0.4, False),
        ("6.1e1", 61.237, True),
        ("65536", 65536.0, True),
        ("-61.2", 61.237, False),
    ],
)
def test_a_number_is_the_kept_one_within_what_was_printed(printed: str, value: float, fits: bool):
    kept = measured(metrics=metrics(dram_pct=value))
    text = contracts.FORMS["profile"].example.replace("dram_pct=61", f"dram_pct={printed}")
    text = text.replace("| 61 | +18", f"| {printed} | +18")
    found = contract_kept.strange(handed(text), kept)
    if fits:
        assert found == []
    else:
        said = f"dram_pct={Decimal(printed)}, but it is {value:g} in the kept profile. Fix: write that."
        assert found == [f"Opportunities: {said}", f"Against the version before: {said}"]


def test_a_metric_that_nobody_measured():
    example = contracts.FORMS["profile"].example.replace("dram_pct=61", "occupancy_pct=50")
    (found,) = contract_kept.strange(handed(example), measured(metrics=metrics(dram_pct=61)))
    assert found.startswith("Opportunities: occupancy_pct=50, but it was not measured. Fix: take a metric that")


def test_where_it_is_kept_and_what_was_before(campaign: Campaign, make: ModuleType):
    script = make.Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.until(campaign, "profile_after")
    now = state.read(campaign)
    assert contract_kept.kept(now, "toy/v1") is None
    script.round(campaign)

    script.until(campaign, "selection")
    now = state.read(campaign)
    assert contract_kept.kept(now, "toy/v1") == ("profile", now.open.profile)
    assert contract_kept.previous(now, now.open.profile) is None  # the first version came from none

    script.until(campaign, "outcome")
    now = state.read(campaign)
    stages = measured().stages
    after = now.open.profile_after.model_copy(update={"stages": stages})
    assert contract_kept.kept(now, "toy/v2") == ("profile_after", now.open.profile_after)
    assert contract_kept.previous(now, after) == now.open.profile
    text = contract_kept.printed(after, "scale", "cpu", now)
    assert f"Kept: devlog/scale/{campaign.name}/rounds/open/profile_after.json.\n" in text
    assert "| dram_pct | 40 | 50 | +10 |" in text

    script.round(campaign)
    script.until(campaign, "selection")
    now = state.read(campaign)
    assert now.open.profile.version == "v2"
    # Round 2's own record says which profile v2 was made from.
    assert contract_kept.previous(now, now.open.profile) == now.records[1].profile
    rounds.record_profile(campaign, now.open.profile)
