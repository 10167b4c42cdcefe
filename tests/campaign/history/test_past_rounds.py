"""Past rounds: the gap before each, the gain that it measured, and the workloads that both are of."""

from __future__ import annotations

from math import log

import pytest
from campaign_kit import OP, Script, evaluation

from warpsmith.campaign import start
from warpsmith.campaign.history import past_rounds, stopping, store
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.spend import Spend
from warpsmith.project import Project


@pytest.fixture
def played(project: Project) -> store.Campaign:
    """A baseline, an accepted round, and one that was rolled back although it was 20 % faster."""
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=3)
    Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"}).run(campaign)
    return campaign


def of_workloads(judged: Evaluation, shares: dict[str, float], **changes: object) -> Evaluation:
    """The same evaluation at workloads with these shares of the ceiling."""
    (result,) = judged.results
    results = tuple(
        result.model_copy(
            update={"workload": name, "timing": result.timing.model_copy(update={"ceiling_share": share})}
        )
        for name, share in shares.items()
    )
    return judged.model_copy(update={"results": results, **changes})


def test_rounds_after_the_baseline_with_gaps_and_gains(played: store.Campaign) -> None:
    first, second = past_rounds.list_past_rounds(played.manifest, played.records())
    assert (first.round, first.line, first.accepted) == (2, f"{OP}/cpu/toy", True)
    assert first.gap == pytest.approx(log(2)), "the baseline is at half of the ceiling"
    assert first.measured == first.gained == pytest.approx(log(1.2))
    assert first.share == pytest.approx(log(1.2) / log(2))
    assert (second.accepted, second.gained) == (False, 0.0)
    assert second.measured == pytest.approx(log(1.2)), "a gain was measured, whatever the verdict"
    assert first.usd is None


def test_cost_of_a_round(played: store.Campaign) -> None:
    spend = Spend(
        phase="DESIGN", agent="a", models=(), turns=1, input_tokens=1, cache_write_tokens=0, cache_read_tokens=0,
        output_tokens=1, usd=1.5, seconds=60, ended="done",
    )  # fmt: skip
    times = {"opened": "2026-11-21 23:50", "closed": "2026-11-22 00:20", "spent": (spend, spend)}
    records = [record.model_copy(update=times) for record in played.records()]
    (past, _) = past_rounds.list_past_rounds(played.manifest, records)
    assert (past.minutes, past.usd) == (30, 3)


def test_a_struck_round_gained_nothing(played: store.Campaign) -> None:
    from warpsmith.campaign.rounds.strike import strike_round

    strike_round(played, 2, "The result was cached between two calls.")
    first, _ = past_rounds.list_past_rounds(played.manifest, played.records())
    assert (first.accepted, first.gained) == (False, 0)


def test_the_gap_is_that_of_representative_workloads_and_never_below_zero(played: store.Campaign) -> None:
    whole = of_workloads(played.records()[0].evaluation, {"a": 0.5, "b": 1.25, "tiny": 0.01})
    named = whole.model_copy(update={"representative": ("a", "b")})
    names = past_rounds.round_workloads(played.manifest, [named])
    assert names == {"a", "b"}
    assert past_rounds.limit_gap(named, names) == pytest.approx(log(2) / 2)
    everything = played.manifest.model_copy(update={"shapes": "full"})
    assert past_rounds.round_workloads(everything, [named]) == {"a", "b", "tiny"}
    later = of_workloads(played.records()[1].evaluation, {"a": 0.6, "b": 1.0})
    assert past_rounds.round_workloads(played.manifest, [whole]) == {"a", "b", "tiny"}, "an old baseline"
    assert past_rounds.round_workloads(played.manifest, [whole, later]) == {"a", "b"}


def test_a_baseline_at_its_target_stops_although_tiny_workloads_are_far_below(played: store.Campaign) -> None:
    manifest = played.manifest.model_copy(update={"max_iterations": None})
    whole = of_workloads(played.records()[0].evaluation, {"a": 0.95, "b": 0.95, "tiny": 0.01})
    assert stopping.stop_reason(manifest, whole, 1) is None
    named = whole.model_copy(update={"representative": ("a", "b")})
    assert "reaches 95.0% of the ceiling" in (stopping.stop_reason(manifest, named, 1) or "")


def test_a_gain_that_was_refused_after_timing_counts_and_a_loss_does_not(played: store.Campaign) -> None:
    judged = played.records()[1].evaluation
    refused = judged.model_copy(update={"aggregates": ()})
    assert past_rounds.measured_gain(refused) == pytest.approx(log(1.2))
    assert past_rounds.measured_gain(refused.model_copy(update={"results": ()})) == 0
    path = played.project.kernels / OP / "toy" / "v3.toy"
    assert past_rounds.measured_gain(evaluation(path, "ROLLBACK", 0.5)) == 0


@pytest.mark.parametrize(("measured", "gap", "share"), [(0.1, 0.4, 0.25), (0.5, 0.4, 1), (0.1, 0, 0), (0, 0.4, 0)])
def test_share_of_the_gap(measured: float, gap: float, share: float) -> None:
    assert past_rounds.gap_share(measured, gap) == pytest.approx(share)


def test_a_campaign_with_a_corrupt_record_is_left_out(played: store.Campaign) -> None:
    other = start.start_campaign(played.project, OP, "cpu", "toy", max_iterations=2)
    Script({f"v{number}": "ACCEPT" for number in range(1, 9)}).run(other)
    assert len(past_rounds.read_past_rounds(played.project)) == 3
    (played.rounds / "002" / "record.json").write_text("{")
    assert {past.campaign for past in past_rounds.read_past_rounds(played.project)} == {other.name}


def test_totals_are_those_of_the_rounds(played: store.Campaign) -> None:
    other = start.start_campaign(played.project, OP, "cpu", "toy", max_iterations=2)
    Script({f"v{number}": "ACCEPT" for number in range(1, 9)}).run(other)
    rounds, totals = past_rounds.read_past_rounds(played.project), past_rounds.read_past_totals(played.project)
    assert (totals.rounds, totals.accepted) == (3, 2)
    assert totals.shares == pytest.approx(sum(past.share for past in rounds))
    assert [(past.campaign, past.round) for past in totals.last] == [(played.name, 3), (other.name, 2)]
