"""Rules over timings of a GPU: triggers are metrics, entries are pages, at most three opportunities, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warpsmith.core.metrics import METRICS
from warpsmith.profiling.diagnosis.cpu_rules import CPU_RULES, CpuRule
from warpsmith.profiling.diagnosis.rules import GPU_RULES, Rule, suggest_opportunities

KNOWLEDGE = Path(__file__).parents[3] / "docs" / "knowledge"


def values(**changes: float) -> dict[str, float]:
    """A version with nothing to suggest: near the ceiling, on all cores."""
    quiet = {
        "dram_pct": 96.0, "ceiling_pct": 96.0, "worst_ceiling_pct": 95.0, "small_ceiling_pct": 95.0,
        "small_time_us": 50.0, "time_us": 500.0, "cores": 8.0,
    }  # fmt: skip
    return quiet | changes


def entries(**changes: float) -> list[str | None]:
    return [found.entry for found in suggest_opportunities(values(**changes))]


@pytest.mark.parametrize("rule", [*GPU_RULES, *CPU_RULES], ids=lambda rule: f"{rule.metric}-{rule.entry}")
def test_every_rule_names_a_page_and_a_metric(rule: Rule | CpuRule):
    pages = [page for page in KNOWLEDGE.rglob(f"{rule.entry}.md") if "hardware" not in page.parts]
    assert len(pages) == 1
    assert rule.metric in METRICS


def test_a_version_at_the_ceiling_gets_no_suggestion():
    assert suggest_opportunities(values()) == ()


@pytest.mark.parametrize(
    ("changes", "entry"),
    [
        ({"spill_bytes": 16, "ceiling_pct": 50}, "register-spills"),
        ({"small_ceiling_pct": 30}, "split-reduction"),
        ({"host_overhead_us": 60}, "cuda-graphs-for-launch-bound"),
        ({"size_slope": 0.5, "dram_pct": 85, "ceiling_pct": 85}, "persistent-grid"),
        ({"dram_pct": 50, "ceiling_pct": 50}, "single-pass-online-reduction"),
        ({"dram_pct": 80, "ceiling_pct": 80}, "triton-num-warps-by-row-length"),
        ({"worst_ceiling_pct": 40}, "row-in-registers"),
    ],
)
def test_each_rule_fires_on_what_it_is_for(changes: dict[str, float], entry: str):
    assert entry in entries(**changes)


def test_every_rule_is_tried_above():
    marks = test_each_rule_fires_on_what_it_is_for.pytestmark
    assert {case[1] for case in marks[0].args[1]} == {rule.entry for rule in GPU_RULES}


def test_values_that_were_not_measured_suggest_nothing():
    assert "persistent-grid" not in entries(dram_pct=20, ceiling_pct=20)


def test_three_at_most_the_largest_saving_first():
    found = suggest_opportunities(
        values(
            dram_pct=30,
            ceiling_pct=30,
            spill_bytes=8,
            small_ceiling_pct=10,
            worst_ceiling_pct=10,
            size_slope=0.1,
            host_overhead_us=900,
        ),
    )
    gains = [one.gain_pct for one in found]
    assert len(found) == 3
    assert gains == sorted(gains, reverse=True)
    assert found[0].entry == "split-reduction"
    assert gains == [60, 50, 50]
    assert [one.entry for one in found[1:]] == ["register-spills", "single-pass-online-reduction"]


def test_an_opportunity_says_what_suggested_it():
    found = suggest_opportunities(values(spill_bytes=64, ceiling_pct=80))[0]
    assert (found.trigger.name, found.trigger.value, found.gain_pct) == ("spill_bytes", 64, 20)


def test_one_opportunity_an_entry_the_larger_one(monkeypatch: pytest.MonkeyPatch):
    def rule(saves: float) -> Rule:
        return Rule("dram_pct", lambda v: True, "row-in-registers", f"save {saves}", lambda v: saves)

    monkeypatch.setattr("warpsmith.profiling.diagnosis.rules.GPU_RULES", (rule(0.1), rule(0.3), rule(0.2)))
    assert [(one.name, one.gain_pct) for one in suggest_opportunities(values())] == [("save 0.3", 30)]


@pytest.mark.parametrize("share", [0.01, 10, 45, 60, 80, 99, 130])
def test_no_saving_is_larger_than_the_room_below_the_ceiling(share: float):
    extremes: dict[str, Any] = {
        "dram_pct": share, "ceiling_pct": share, "worst_ceiling_pct": share, "small_ceiling_pct": share,
        "spill_bytes": 8, "missed_loops": 1, "vectorized_loops": 1, "size_slope": 0.1,
    }  # fmt: skip
    for found in suggest_opportunities(values(**extremes)):
        assert 0 < found.gain_pct <= max(0, 100 - share) + 0.05
