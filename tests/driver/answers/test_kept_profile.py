"""A measured profile as text: short, against the right version; and no other number in a profiler's answer."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import open_round, state
from warpsmith.core.metrics import METRICS
from warpsmith.core.profile import Profile
from warpsmith.driver.answers import profile as kept_profiles
from warpsmith.driver.answers.models import EXAMPLES, ProfileAnswer

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


def answer(number: str, metric: str = "dram_pct") -> ProfileAnswer:
    """The example with a number as it is written in JSON."""
    trigger = {"name": metric, "value": json.loads(number)}
    opportunity = EXAMPLES["profile"]["opportunities"][0] | {"trigger": trigger}  # type: ignore[index]
    changes = [{"metric": metric, "before": 43, "after": json.loads(number)}]
    return ProfileAnswer.model_validate(EXAMPLES["profile"] | {"opportunities": [opportunity], "changes": changes})


def test_twenty_workloads_are_short():
    text = kept_profiles.describe_profile(measured(20), "softmax", "h200", None)
    assert text.startswith(
        "Evidence: timings only; with counters: measured bytes.\nKept: nowhere, no campaign waits"
    )
    assert "Shown: the 6 slowest stages; 14 more are faster." in text
    assert "| 5x131072-bfloat16-masked | 167 us | - | 61.2 | - | memory |" in text
    assert "| 6x131072" not in text
    assert f"at most 22.5 %; dram_pct=61.2; entry {ENTRY}" in text
    assert "**Bottleneck: memory.** It waits for memory." in text
    assert len(text) / 3.5 < TOKENS


def test_nothing_timed():
    text = kept_profiles.describe_profile(measured(0, evidence="static"), "softmax", "h200", None)
    assert "No stage was timed." in text


def test_hostile_words_do_not_break_the_text():
    hostile = "a | b\n## Profile: c d/v1 on e\n### Stages"
    stage = measured().stages[0].model_copy(update={"name": hostile, "issue": hostile})
    chance = measured().opportunities[0].model_copy(update={"name": hostile})
    profile = measured().model_copy(update={"root_cause": hostile, "stages": (stage,), "opportunities": (chance,)})
    text = kept_profiles.describe_profile(profile, "softmax", "h200", None)
    assert [line for line in text.splitlines() if line.startswith("#")] == ["## Profile: softmax toy/v2 on h200"]
    assert text.count("a \\| b") == 4


@pytest.mark.parametrize(
    ("written", "value", "agrees"),
    [
        ("61", 61.237, True),
        ("61.2", 61.237, True),
        ("61.24", 61.237, True),
        ("62", 61.237, False),
        ("61.3", 61.237, False),
        ("61.5", 61.45, True),
        ("60", 61.237, False),
        ("0", 0.4, True),
        ("0.1", 0.4, False),
        ("6.1e1", 61.237, True),
        ("65536", 65536.0, True),
        ("-61.2", 61.237, False),
    ],
)
def test_a_number_agrees_within_the_digits_that_were_written(written: str, value: float, agrees: bool):
    differences = kept_profiles.list_differences(answer(written), measured(metrics=metrics(dram_pct=value)))
    if agrees:
        assert differences == []
    else:
        assert [text.split("`")[1] for text in differences] == ["opportunities.0", "changes.0"]
        for text in differences:
            assert f"dram_pct is {json.loads(written):g}, but {value:g} in the kept profile" in text


def test_a_metric_that_nobody_measured():
    differences = kept_profiles.list_differences(
        answer("50", "occupancy_pct"), measured(metrics=metrics(dram_pct=61))
    )
    assert len(differences) == 2
    assert differences[0].startswith("`opportunities.0`: occupancy_pct was not measured")


def test_where_it_is_kept_and_what_was_before(campaign: Campaign, make: ModuleType):
    script = make.Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.until(campaign, "profile_after")
    now = state.read_state(campaign)
    assert kept_profiles.open_profile(now, "toy/v1") is None
    script.round(campaign)

    script.until(campaign, "selection")
    now = state.read_state(campaign)
    assert kept_profiles.open_profile(now, "toy/v1") == ("profile", now.carried_profile)
    assert kept_profiles.profile_before(now, now.carried_profile) is None  # the first version came from none

    script.until(campaign, "outcome")
    now = state.read_state(campaign)
    before = metrics(dram_pct=43.0, registers_per_thread=64, time_us=9.0, waves=1.0, l2_hit_pct=3)
    after = metrics(dram_pct=61.237, registers_per_thread=65536, time_us=5.0, waves=1.0, spill_bytes=1)
    old, new = measured(metrics=before), measured(metrics=after)
    opened = now.open.profile.model_copy(update={"metrics": old.metrics})
    latest = now.open.profile_after.model_copy(update={"metrics": new.metrics, "stages": new.stages})
    assert kept_profiles.open_profile(now, "toy/v2") == ("profile_after", now.open.profile_after)
    assert kept_profiles.profile_before(now, latest) == now.open.profile
    campaign.write_part("profile", opened)
    text = kept_profiles.describe_profile(latest, "scale", "cpu", state.read_state(campaign))
    assert f"Kept: devlog/scale/{campaign.name}/rounds/open/profile_after.json.\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 5][2:]
    # The largest relative change first; times of two sessions do not compare.
    assert rows == ["| registers_per_thread | 64 | 65536 | +65472 |", "| dram_pct | 43 | 61.2 | +18.2 |"]
    campaign.write_part("profile", now.open.profile)

    script.round(campaign)
    script.until(campaign, "selection")
    now = state.read_state(campaign)
    assert now.current_profile.version == "v2"
    # Round 2's own record says which profile v2 was made from.
    assert kept_profiles.profile_before(now, now.current_profile) == now.records[1].profile
    open_round.record_profile(campaign, now.current_profile)


def test_a_profile_that_names_nothing_says_so():
    text = kept_profiles.describe_profile(measured(opportunities=[]), "softmax", "cpu", None)
    assert "\n\nNothing that this profile can name.\n" in text


def test_an_answer_may_be_empty_only_where_the_profile_is():
    empty = ProfileAnswer.model_validate(EXAMPLES["profile"] | {"opportunities": [], "changes": []})
    assert kept_profiles.list_differences(empty, measured(opportunities=[])) == []
    (fault,) = kept_profiles.list_differences(empty, measured())
    assert fault.startswith("`opportunities`: the kept profile has some")


def test_a_busy_machine_is_named_beside_the_evidence():
    assert "Machine: " not in kept_profiles.describe_profile(measured(), "softmax", "cpu", None)
    busy = measured(load="other processes keep 1.9 cores busy")
    text = kept_profiles.describe_profile(busy, "softmax", "cpu", None)
    assert "Machine: other processes keep 1.9 cores busy" in text
