"""EVALUATE, stop conditions, calibration and masks: arithmetic over records."""

from __future__ import annotations

import pytest
from campaign_kit import OP, Script, evaluation, plan, profile

from warpsmith.campaign import start
from warpsmith.campaign.calibration import calibrate, calibrate_by_category
from warpsmith.campaign.history import memory, stopping, store
from warpsmith.campaign.rounds import evaluate, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.campaign.status import campaign_status
from warpsmith.core.evaluation import Energy
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.project import Project


@pytest.fixture
def played(project: Project) -> store.Campaign:
    """A baseline, an accepted round, four rolled back ones."""
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=6)
    Script({"v1": "ACCEPT", "v2": "ACCEPT"} | {f"v{n}": "ROLLBACK" for n in range(3, 7)}).run(campaign)
    return campaign


def version(campaign: store.Campaign, number: int = 1):
    path = campaign.project.kernels / OP / "toy" / f"v{number}.toy"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(f"version {number}\n")
    return path


def test_outcome_of_an_accepted_version(played: store.Campaign) -> None:
    path = version(played, 7)
    found = evaluate.evaluate_outcome(
        state.read_state(played), evaluation(path, speedup=1.3), plan(), profile(path), profile(path, dram_pct=50)
    )
    assert found.best == "toy/v7"
    assert found.gain == pytest.approx(0.3)
    assert found.movement is not None
    assert (found.movement.before, found.movement.after, found.movement.as_predicted) == (40, 50, True)
    assert found.stagnation.not_improving == 0


def test_outcome_of_a_rollback(played: store.Campaign) -> None:
    path = version(played, 7)
    found = evaluate.evaluate_outcome(
        state.read_state(played), evaluation(path, "ROLLBACK", 0.9), plan(), profile(path), None
    )
    assert found.best == "toy/v2"
    assert found.gain == pytest.approx(-0.1)
    assert found.movement is not None
    assert found.movement.as_predicted is None
    assert found.stagnation.rollbacks_in_a_row == 5


@pytest.mark.parametrize(
    ("after", "change", "expected"),
    [
        (47.5, 15, True),
        (47.4, 15, False),
        (60, 15, True),
        (30, 15, False),
        (35, -10, True),
        (45, -10, False),
        (45, 0, None),
    ],
)
def test_metric_moves_as_predicted_when_half_as_far(
    played: store.Campaign, after: float, change: float, expected: bool | None
) -> None:
    path = version(played)
    found = evaluate.metric_movement(plan(expected_change=change), profile(path), profile(path, dram_pct=after))
    assert found.as_predicted is expected


def test_stops_at_the_performance_target(campaign: store.Campaign) -> None:
    path = version(campaign)
    reached, short = evaluation(path, share=0.9), evaluation(path, share=0.89)
    assert "reaches 90.0% of the ceiling" in (stopping.stop_reason(campaign.manifest, reached, 1) or "")
    assert stopping.stop_reason(campaign.manifest, short, 1) is None
    own = campaign.manifest.model_copy(update={"performance_target": 0.5})
    assert stopping.stop_reason(own, short, 1) is not None


def test_by_energy_no_share_of_the_ceiling_stops_but_one_that_was_asked_for(campaign: store.Campaign) -> None:
    reached = evaluation(version(campaign), share=0.95)
    by_energy = campaign.manifest.model_copy(update={"objective": "energy"})
    assert stopping.stop_reason(by_energy, reached, 1) is None
    own = by_energy.model_copy(update={"performance_target": 0.9})
    assert "the target is 90.0%" in (stopping.stop_reason(own, reached, 1) or "")


def test_the_gain_is_of_what_decides(played: store.Campaign) -> None:
    judged = played.records()[1].evaluation
    whole = judged.aggregates[0].model_copy(update={"speedup": 1.5})
    energy = Energy(workloads={}, aggregate=whole, floor=0.01)
    by_energy = judged.model_copy(update={"energy": energy})
    now = state.read_state(played)
    gains = [evaluate.evaluate_outcome(now, one, plan(), None, None).gain for one in (judged, by_energy)]
    assert gains == [pytest.approx(0.2), pytest.approx(0.5)]


def test_stops_at_the_last_iteration_and_never_by_stagnation(played: store.Campaign) -> None:
    records = played.records()
    best = records[1].evaluation
    assert stopping.stop_reason(played.manifest, best, 5) is None
    assert (stopping.stop_reason(played.manifest, best, 6) or "").startswith("6 rounds are closed")
    endless = played.manifest.model_copy(update={"max_iterations": None})
    assert stopping.stop_reason(endless, best, 119) is None
    assert [record.outcome.stop is None for record in records] == [True] * 5 + [False]


def test_calibration(played: store.Campaign) -> None:
    records = [r for r in played.records() if r.plan.category != "baseline"]
    measured = [0.2, 0.1, 0.09, -0.1]
    changed = [
        r.model_copy(update={"outcome": r.outcome.model_copy(update={"gain": gain})})
        for r, gain in zip(records, measured, strict=False)
    ]
    found = calibrate([played.records()[0], *changed])
    assert [p.measured for p in found.predictions] == measured
    assert found.median_error == pytest.approx(0.105)
    assert found.within_2x == pytest.approx(0.5)
    assert found.median_measured == pytest.approx(0.095)
    apart = calibrate_by_category(found)
    assert list(apart) == sorted({p.category for p in found.predictions})
    assert sum(len(part.predictions) for part in apart.values()) == len(found.predictions)
    assert calibrate([]).median_error is None


def test_restart_masks_half_and_is_undone(played: store.Campaign) -> None:
    masks = memory.mask_rounds(played, seed=3)
    assert len(masks.masked) == 2
    assert set(masks.masked) <= {3, 4, 5, 6}, "never the baseline or the best"
    assert memory.mask_rounds(played, seed=3).masked == masks.masked
    drawn = {memory.mask_rounds(played, seed).masked for seed in range(20)}
    assert len(drawn) > 3
    now = state.read_state(played)
    assert len(now.visible) == 4
    assert now.best_name == "toy/v2"
    assert now.stagnation.rollbacks_in_a_row == 2, "masked rounds do not count"
    assert memory.unmask_rounds(played)
    assert len(state.read_state(played).visible) == 6
    assert not memory.unmask_rounds(played)


def test_masked_rounds_are_hidden_from_planning_but_not_from_duplicates(played: store.Campaign) -> None:
    from warpsmith.campaign.history import solutions

    memory.mask_rounds(played, seed=0)
    now = state.read_state(played)
    hidden = next(kept for kept in now.rounds if kept.record.round not in {r.round for r in now.visible})
    copy = solutions.Solution("toy", 7, version(played, 7))
    copy.path.write_bytes((hidden.folder / hidden.record.snapshot).read_bytes() + b"\n\n")
    with pytest.raises(Misuse, match=f"rolled back in round {hidden.record.round}"):
        solutions.refuse_duplicate(copy, now.rounds)


def test_restart_needs_rounds(campaign: store.Campaign) -> None:
    Script({"v1": "ACCEPT"}).round(campaign)
    with pytest.raises(Misuse, match="a restart needs two"):
        memory.mask_rounds(campaign, 0)


def test_torn_masks_are_put_aside(played: store.Campaign) -> None:
    memory.mask_rounds(played, 0)
    (played.folder / "masks.json").write_text("{")
    with pytest.raises(CorruptRecord, match=r"masks\.json"):
        state.read_state(played)
    assert any("masks.json" in line for line in resume_campaign(played))
    assert len(state.read_state(played).visible) == 6


def test_status(played: store.Campaign) -> None:
    memory.mask_rounds(played, 0)
    found = campaign_status(state.read_state(played))
    assert (found.best, found.phase, len(found.rounds)) == ("toy/v2", "REPORT", 6)
    assert found.ceiling_share == pytest.approx(0.5)
    assert sum(line.masked for line in found.rounds) == 2
