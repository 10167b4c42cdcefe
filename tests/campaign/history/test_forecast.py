"""Forecast of another round: its gain, its return, and the stop that follows."""

from __future__ import annotations

from math import expm1, log

import pytest
from campaign_kit import OP, Script, evaluation, plan

from warpsmith.campaign import start
from warpsmith.campaign.history import forecast, stopping, store
from warpsmith.campaign.history.past_rounds import PastRound, total_rounds
from warpsmith.campaign.rounds import due_phase, evaluate, state
from warpsmith.campaign.rounds.strike import strike_round
from warpsmith.core.campaign import Strike
from warpsmith.errors import Misuse
from warpsmith.project import Project

CALM = {"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"}


def past(number: int = 2, measured: float = 0.1, gap: float = 0.5, **changes: object) -> PastRound:
    usual = {
        "campaign": "c", "round": number, "line": "scale/cpu/toy", "objective": "time",
        "opened": "2026-11-21 10:00", "closed": f"2026-11-21 10:{number:02d}", "gap": gap, "measured": measured,
        "accepted": measured > 0, "usd": None,
    }  # fmt: skip
    return PastRound.model_validate({**usual, **changes})


def test_without_any_round_a_tenth_of_the_gap_is_expected() -> None:
    found = forecast.forecast_gain(0.5, None, total_rounds([]))
    assert found.gain == pytest.approx(expm1(0.05))
    assert (found.minutes, found.usd) == (None, None)
    assert found.gain_per("minute") is None


def test_the_last_round_weighs_ten_times_the_mean() -> None:
    rounds = [past(2, 0.1), past(3, 0.0)]
    found = forecast.forecast_gain(0.4, rounds[-1].share, total_rounds(rounds))
    mean = (10 * 0.1 + 0.2 + 0.0) / 12
    assert found.mean_share == pytest.approx(mean)
    assert found.gain == pytest.approx(expm1(0.4 * 0.1 * mean / 1.1))
    assert (found.rounds, found.accepted) == (2, 1)


def test_return_by_the_median_cost_of_its_own_rounds() -> None:
    own = [past(4, usd=2.0), past(8, usd=4.0), past(9, usd=None)]
    found = forecast.forecast_gain(0.5, 0.2, total_rounds([past(50), *own]), own)
    assert (found.minutes, found.usd) == (8, 3)
    assert found.gain_per("minute") == pytest.approx(found.gain / 8)
    assert found.gain_per("usd") == pytest.approx(found.gain / 3)
    assert "at 8 min a round" in found.text
    assert "at $3.00 a round" in found.text
    quick = [past(2, opened="2026-11-21 10:02")]
    assert forecast.forecast_gain(0.5, 0.2, total_rounds(quick), quick).minutes == 1, (
        "records have it to the minute"
    )


def test_the_last_round_of_a_line() -> None:
    rounds = [past(3), past(2), past(4, line="scale/cpu/other"), past(5, objective="energy")]
    assert forecast.last_of_line("scale/cpu/toy", "time", rounds) == rounds[0]
    assert forecast.last_of_line("scale/cpu/toy", "energy", rounds) == rounds[3]
    assert forecast.last_of_line("scale/cpu/none", "time", rounds) is None


@pytest.mark.parametrize(
    ("minimum", "limit", "unit", "expected"),
    [
        (None, None, "round", forecast.MINIMUM_GAIN), (None, 4, "round", None), (0.1, 4, "round", 0.1),
        (0.0, None, "round", 0.0), (0.1, None, "usd", 0.1),
    ],
)  # fmt: skip
def test_what_the_user_sets_overrides_the_default(minimum, limit, unit, expected) -> None:
    assert forecast.default_minimum_gain(minimum, limit, unit) == expected


def test_a_minimum_by_dollar_has_no_default() -> None:
    with pytest.raises(Misuse, match="a dollar has no default"):
        forecast.default_minimum_gain(None, None, "usd")


@pytest.mark.parametrize(("unit", "minimum", "stops"), [
    ("round", 0.02, True), ("round", 0.001, False), ("round", 0.0, False), ("round", None, False),
    ("minute", 0.002, True), ("minute", 0.001, False), ("usd", 0.9, False),
])  # fmt: skip
def test_stop_by_round_or_by_the_cost_that_is_known(campaign: store.Campaign, unit, minimum, stops) -> None:
    manifest = campaign.manifest.model_copy(update={"minimum_gain": minimum, "minimum_gain_per": unit})
    own = [past(3, 0.0), past(4, 0.0)]
    found = forecast.forecast_gain(0.5, 0.0, total_rounds(own), own)
    assert found.gain == pytest.approx(0.0038, abs=2e-4)
    assert (found.stop_reason(manifest) is not None) is stops


def test_a_campaign_without_a_minimum_never_ends_by_it(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=6)
    assert "minimum_gain" not in (campaign.folder / store.MANIFEST).read_text()
    Script(CALM | {f"v{n}": "ROLLBACK" for n in range(4, 7)}).run(campaign)
    assert len(campaign.records()) == 6


@pytest.fixture
def played(project: Project) -> store.Campaign:
    """A campaign after two accepted rounds, which goes on."""
    campaign = start.start_campaign(project, OP, "cpu", "toy", minimum_gain=0.02)
    script = Script(CALM)
    script.round(campaign)
    script.round(campaign)
    assert state.read_state(campaign).stop is None
    return campaign


def lose(campaign: store.Campaign) -> str | None:
    """The stop condition after a third version that came out slower."""
    path = campaign.project.kernels / OP / "toy" / "v3.toy"
    path.write_text("slower\n")
    judged = evaluation(path, "ROLLBACK", 0.9)
    return evaluate.evaluate_outcome(state.read_state(campaign), judged, plan(), None, None).stop


def test_a_round_that_came_out_slower_ends_a_campaign_near_its_limit(played: store.Campaign) -> None:
    stop = lose(played)
    assert stop is not None
    assert "the minimum is 2.0% a round" in stop
    assert "at 50.0% of its limit" in stop


def test_a_rolled_back_gain_does_not_end_it(played: store.Campaign) -> None:
    Script(CALM).round(played)
    assert played.records()[-1].verdict == "ROLLBACK"
    assert state.read_state(played).stop is None


def test_the_stop_is_decided_once_and_recorded(played: store.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as poor:
        poor.setattr(forecast.Forecast, "gain", 0.001)
        Script(CALM).round(played)
    recorded = played.records()[-1].outcome.stop
    assert recorded is not None
    now = state.read_state(played)
    assert now.stop == recorded
    assert due_phase.find_due_phase(now).step == "race"
    assert store.is_finished(played)


def test_a_strike_afterwards_opens_the_campaign_again(played: store.Campaign, monkeypatch) -> None:
    monkeypatch.setattr(forecast.Forecast, "gain", 0.001)
    Script(CALM).round(played)
    assert stopping.recorded_stop(played.manifest, played.records())
    strike_round(played, 2, "The result was cached between two calls.")
    assert stopping.recorded_stop(played.manifest, played.records()) is None
    *before, last = played.records()
    early = Strike(record_sha256="0" * 64, reason="It was cached.", at="2020-01-01 00:00")
    struck_before = [*(r.model_copy(update={"struck": early}) for r in before), last]
    assert stopping.recorded_stop(played.manifest, struck_before) == last.outcome.stop


def test_the_first_forecast_of_a_campaign_takes_its_line(project: Project, played: store.Campaign) -> None:
    other = start.start_campaign(project, OP, "cpu", "toy")
    Script({"v2": "ACCEPT", "v3": "ACCEPT"}).until(other, "profile_after")
    now = state.read_state(other)
    assert forecast.forecast_round(other, now.records) is None, "nothing is accepted yet"
    found = forecast.forecast_round(other, now.records, now.open.verdict)
    assert found is not None
    assert found.last_share == pytest.approx(log(1.2) / log(2))
    assert (found.rounds, found.accepted) == (1, 1)


def test_next_shows_the_forecast_until_a_plan_stands(project: Project) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=9)
    script = Script(CALM)

    def notes() -> list[str]:
        now = state.read_state(campaign)
        return due_phase.forecast_notes(now, due_phase.find_due_phase(now))

    assert notes() == [], "the baseline has no best version"
    script.until(campaign, "selection")
    (note,) = notes()
    assert "expected gain 7.2%" in note
    assert "at 50.0% of its limit" in note
    script.until(campaign, "design")
    assert notes() == []


def test_a_campaign_without_a_minimum_gets_advice(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = start.start_campaign(project, OP, "cpu", "toy", max_iterations=9)
    Script(CALM).until(campaign, "selection")
    monkeypatch.setattr(forecast.Forecast, "gain", 0.001)
    now = state.read_state(campaign)
    (note,) = due_phase.forecast_notes(now, due_phase.find_due_phase(now))
    assert "it seldom pays: by default a campaign ends under 2%" in note
