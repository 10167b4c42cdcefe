"""Replay of recorded campaigns under a minimum gain, on made rounds and on those that ship."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from warpsmith.campaign import stop_replay
from warpsmith.campaign.history import past_rounds
from warpsmith.campaign.history.past_rounds import PastRound
from warpsmith.campaign.stop_replay import MINIMA, MOST_LOST, CampaignReplay, StopReplay
from warpsmith.cli.main import load_app
from warpsmith.project import Project

ROOT = Path(__file__).parents[2]


def rounds(campaign: str, *measured: float, hour: int = 10, line: str = "") -> list[PastRound]:
    """Rounds of a campaign with a gap of 0.5; a gain above 0 was accepted."""
    return [
        PastRound(
            campaign=campaign, round=number, line=line or campaign, objective="time", gap=0.5, measured=gain,
            opened=f"2026-11-21 {hour:02d}:{number:02d}", closed=f"2026-11-21 {hour:02d}:{number + 1:02d}",
            accepted=gain > 0, usd=None,
        )
        for number, gain in enumerate(measured, start=2)
    ]  # fmt: skip


def test_a_campaign_stops_after_a_vain_round_and_loses_what_came_later() -> None:
    replay = stop_replay.replay_campaigns(rounds("a", 0.2, 0.0, 0.1, 0.0), 0.02)
    (line,) = replay.campaigns
    assert (line.rounds, line.stop, line.saved) == (4, 4, 2)
    assert line.expected is not None
    assert line.expected < 0.02
    assert (line.gained, line.lost) == (pytest.approx(0.3), pytest.approx(0.1))
    assert (replay.saved_share, replay.lost_share) == (0.5, pytest.approx(1 / 3))
    assert replay.text == "2 of 4 rounds saved (50.0%), 33.3% of the gain lost"


def test_no_minimum_saves_nothing() -> None:
    replay = stop_replay.replay_campaigns(rounds("a", 0.2, 0.0, 0.0), 0.0)
    assert (replay.saved, replay.lost_share, replay.campaigns[0].stop) == (0, 0, None)


def test_only_rounds_that_were_closed_by_then_are_known() -> None:
    vain, first = rounds("early", 0.0, 0.0, hour=9, line="x"), rounds("late", 0.0, hour=11, line="x")
    assert stop_replay.replay_campaigns([*vain, *first], 0.02).campaigns[1].stop == 2, "its line was vain before"
    future = rounds("early", 0.0, 0.0, hour=12, line="x")
    assert stop_replay.replay_campaigns([*future, *first], 0.02).campaigns[1].stop is None


def campaign(name: str, saved: int, lost: float) -> CampaignReplay:
    return CampaignReplay(campaign=name, rounds=4, stop=None, expected=None, saved=saved, gained=1, lost=lost)


def test_a_campaign_that_is_held_out_has_no_say_in_its_minimum() -> None:
    strict = StopReplay(minimum_gain=0.03, campaigns=(campaign("a", 3, 0.0), campaign("b", 3, 0.5)))
    mild = StopReplay(minimum_gain=0.01, campaigns=(campaign("a", 1, 0.0), campaign("b", 1, 0.0)))
    held_out = stop_replay.replay_held_out([mild, strict])
    assert held_out.minimum_gain is None
    assert [line.saved for line in held_out.campaigns] == [1, 3], "`b` suits mild, and `a` alone suits strict"


def test_the_goal_on_the_records_that_ship() -> None:
    """At least 23 % of the rounds saved for at most 2 % of the gain; a fifth where held out."""
    shipped = Project(ROOT, ROOT / "kernels", ROOT / "devlog", ROOT / "docs" / "knowledge")
    recorded = past_rounds.read_past_rounds(shipped)
    replays = [stop_replay.replay_campaigns(recorded, minimum) for minimum in MINIMA]
    chosen = replays[MINIMA.index(0.02)]
    assert chosen.rounds >= 39
    assert chosen.saved_share >= 0.23
    assert chosen.lost_share <= MOST_LOST
    held_out = stop_replay.replay_held_out(replays)
    assert held_out.saved_share >= 0.2
    assert held_out.lost_share <= MOST_LOST


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(load_app(), ["stop-replay", "--minimum-gain", "0"], catch_exceptions=False)
    lines = result.stdout.splitlines()
    assert "softmax-triton-h200-20261121: 0 of 6 rounds saved, goes on" in lines
    assert any(line.startswith("All campaigns at 0.0%: 0 of ") for line in lines)
    summary = json.loads(CliRunner().invoke(load_app(), ["stop-replay", "--json"]).stdout)
    assert summary["replay"]["minimum_gain"] == 0.02
    assert [replay["minimum_gain"] for replay in summary["minima"]] == list(MINIMA)
