"""Closed campaigns: nothing more is recorded in them, nothing waits for them, and everything stays."""

from __future__ import annotations

import pytest
from campaign_kit import OP, Script

from warpsmith.campaign import start
from warpsmith.campaign.history import closing, store
from warpsmith.campaign.rounds import due_phase, open_round, state
from warpsmith.core.campaign import Selection
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.hooks import open_work
from warpsmith.project import Project

WHY = "The operator is not needed any more."


def test_an_abandoned_campaign_ends_and_keeps_its_records(campaign: store.Campaign) -> None:
    script = Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "selection")
    before = {path: path.read_bytes() for path in campaign.folder.rglob("*") if path.is_file()}
    assert closing.close_campaign(campaign, WHY).text == f"abandoned: {WHY}"
    assert {path: path.read_bytes() for path in before} == before
    current = state.read_state(campaign)
    assert current.stop == f"it was abandoned: {WHY}"
    assert due_phase.find_due_phase(current).step == "report"
    for refused in (
        lambda: open_round.record_selection(campaign, Selection(language="toy", because="It is simple.")),
        lambda: open_round.version_to_profile(campaign),
        lambda: open_round.version_to_judge(campaign),
        lambda: closing.close_campaign(campaign, WHY),
    ):
        with pytest.raises(Misuse, match="was abandoned"):
            refused()


def test_a_campaign_without_a_round_can_be_abandoned(campaign: store.Campaign) -> None:
    closing.close_campaign(campaign, WHY)
    assert due_phase.find_due_phase(state.read_state(campaign)).phase == "REPORT"


def test_a_reason_is_required(campaign: store.Campaign) -> None:
    with pytest.raises(Misuse, match="stays open: `reason`"):
        closing.close_campaign(campaign, "  no  ")
    assert campaign.closure() is None


def test_no_command_waits_for_it(project: Project) -> None:
    first, second = (start.start_campaign(project, OP, "cpu", "toy") for _ in range(2))
    with pytest.raises(Misuse, match="Which campaign"):
        store.find_campaign(project)
    assert [c.name for c in closing.list_open_campaigns(project, OP, "cpu")] == [first.name, second.name]
    closing.close_campaign(second, WHY)
    assert store.find_campaign(project).name == first.name
    assert [c.name for c in closing.list_open_campaigns(project, OP)] == [first.name]
    assert closing.list_open_campaigns(project, OP, "h200") == []
    assert [view.name for view in open_work.campaign_views(project) if view.active] == [first.name]


def test_a_closure_that_does_not_read_is_a_finding(campaign: store.Campaign) -> None:
    (campaign.folder / store.CLOSED).write_text("{")
    with pytest.raises(CorruptRecord):
        campaign.closure()
    assert not store.is_finished(campaign)


def test_only_an_amended_campaign_may_have_another_definition(campaign: store.Campaign) -> None:
    record = campaign.rounds / "001" / "record.json"
    assert not closing.is_amended(record)
    closing.close_campaign(campaign, WHY)
    assert not closing.is_amended(record)
    (campaign.folder / store.CLOSED).unlink()
    closing.close_campaign(campaign, WHY, "scale-toy-cpu-2")
    assert closing.is_amended(record)
