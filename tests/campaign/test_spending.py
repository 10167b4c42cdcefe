"""What agents cost is kept beside the open round's steps and goes into its record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from campaign_kit import Script
from typer.testing import CliRunner

from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import due_phase, lessons, state
from warpsmith.campaign.rounds.resume import resume_campaign
from warpsmith.campaign.status import campaign_status
from warpsmith.cli.main import load_app
from warpsmith.core.spend import Spend
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import RECORD


def spend(usd: float | None = 0.25, **changes: Any) -> Spend:
    told = {
        "phase": "DESIGN", "agent": "kernel-designer", "models": ["m"], "turns": 2, "input_tokens": 10,
        "cache_write_tokens": 0, "cache_read_tokens": 0, "output_tokens": 5, "seconds": 1.5, "ended": "done",
    }  # fmt: skip
    return Spend.model_validate(told | {"usd": usd} | changes)


@pytest.fixture
def script() -> Script:
    return Script({"v1": "ACCEPT", "v2": "ROLLBACK"})


def test_it_is_no_step_and_goes_into_the_record(campaign: store.Campaign, script: Script):
    before = due_phase.find_due_phase(state.read_state(campaign))
    campaign.add_spend(spend(0.25))
    campaign.add_spend(spend(None, ended="died"))
    now = state.read_state(campaign)
    assert due_phase.find_due_phase(now) == before
    assert (now.open.last(), len(now.open.spent), len(now.spent)) == (None, 2, 2)
    script.round(campaign)
    (record,) = campaign.records()
    assert [one.usd for one in record.spent] == [0.25, None]
    assert campaign.spent() == ()
    campaign.add_spend(spend(1))
    assert [one.usd for one in state.read_state(campaign).spent] == [0.25, None, 1]
    script.round(campaign)
    assert [one.usd for one in campaign.records()[1].spent] == [1]


def test_resume_leaves_it_alone(campaign: store.Campaign, script: Script):
    script.until(campaign, "verdict")
    campaign.add_spend(spend())
    (campaign.open / ".tmp-spent.json-1-aa").write_text("{")
    assert resume_campaign(campaign) == ["removed .tmp-spent.json-1-aa, which an interrupted write left"]
    assert campaign.spent() == (spend(),)


def test_resume_puts_a_corrupt_one_away_and_the_round_goes_on(campaign: store.Campaign, script: Script):
    campaign.add_spend(spend())
    (campaign.open / "spent.json").write_text('{"queries": [{}]}')
    with pytest.raises(CorruptRecord, match=r"spent\.json does not read"):
        state.read_state(campaign)
    (done,) = resume_campaign(campaign)
    assert "spent.json is not as the lab wrote it" in done
    script.round(campaign)
    assert campaign.records()[0].spent == ()


def test_it_is_not_counted_twice_while_a_round_is_being_filed(
    campaign: store.Campaign, script: Script, monkeypatch: pytest.MonkeyPatch
):
    campaign.add_spend(spend())
    script.until(campaign, "lesson")

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(lessons, "apply_lesson", dies)
        with pytest.raises(KeyboardInterrupt):
            script.round(campaign)
    now = state.read_state(campaign)
    assert now.filed_round
    assert len(now.spent) == 1


def test_a_record_of_before_is_still_valid(campaign: store.Campaign, script: Script):
    script.round(campaign)
    path = campaign.rounds / "001" / RECORD
    older = json.loads(path.read_text())
    assert older.pop("spent") == []
    assert type(campaign.records()[0]).model_validate(older) == campaign.records()[0]


def test_status_says_it_in_one_line(campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(campaign.project.root)
    assert campaign_status(state.read_state(campaign)).spent is None
    assert "spent:" not in CliRunner().invoke(load_app(), ["status"]).stdout
    campaign.add_spend(spend())
    shown = CliRunner().invoke(load_app(), ["status"]).stdout
    assert "  spent: $0.25 in 1 query, 10 tokens read and 5 written\n" in shown
