"""What a campaign that hides earlier work keeps from its agents, and what stays visible."""

from __future__ import annotations

from pathlib import Path

import campaign_kit
import pytest

from warpsmith.campaign import firewall, start
from warpsmith.campaign.history import store
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import state
from warpsmith.core.evaluation import Verdict
from warpsmith.core.knowledge import HitRate, Try
from warpsmith.driver import brief
from warpsmith.reporting import pages

OP = campaign_kit.OP


@pytest.fixture
def campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Campaign, Campaign]:
    """A first campaign with two rounds, and a second one that hides it and is at its baseline."""
    campaign_kit.use_toys(monkeypatch)
    project = campaign_kit.make_project(tmp_path / "project")
    first = start.start_campaign(project, OP, "cpu", "toy", peers=())
    script = campaign_kit.Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ACCEPT"})
    script.round(first)
    script.round(first)
    (first.folder / "closed.json").write_text('{"reason": "the target is gone", "at": "2026-11-21 14:05"}')
    second = start.start_campaign(project, OP, "cpu", "toy", peers=(), earlier_work="hidden")
    return first, second


def attempt(campaign: Campaign, number: int) -> Try:
    record = f"devlog/{OP}/{campaign.name}/rounds/{number:03}/record.json"
    return Try(record=record, operator=OP, target="cpu", solution="toy/v1", verdict=Verdict.ACCEPT, gain=0.1)


def wall(campaign: Campaign) -> firewall.Firewall:
    found = firewall.campaign_firewall(campaign)
    assert found is not None
    return found


def test_a_campaign_without_the_setting_hides_nothing(campaigns: tuple[Campaign, Campaign]) -> None:
    assert firewall.campaign_firewall(campaigns[0]) is None
    assert "earlier_work" not in (campaigns[0].folder / "manifest.yaml").read_text()


def test_the_current_campaign_decides(campaigns: tuple[Campaign, Campaign]) -> None:
    current = store.find_current_campaign(campaigns[1].project)
    assert current is not None
    assert current.name == campaigns[1].name


def test_a_hit_rate_loses_the_tries_of_earlier_work(campaigns: tuple[Campaign, Campaign]) -> None:
    first, second = campaigns
    elsewhere = attempt(first, 1).model_copy(update={"record": "devlog/other/x/rounds/001/record.json"})
    rate = HitRate.of([attempt(first, 1), attempt(second, 1), elsewhere])
    visible = wall(second).visible_rate(rate)
    assert visible is not None
    assert visible.tried == 2
    assert wall(second).visible_rate(HitRate.of([attempt(first, 1)])) is None


def test_a_page_loses_the_evidence_of_earlier_work(campaigns: tuple[Campaign, Campaign]) -> None:
    first, second = campaigns
    records = [f"devlog/{OP}/{campaign.name}/rounds/001/record.json" for campaign in campaigns]
    rows = "".join(f"| toy | 2 us | 1 us | 2x | {record} |\n" for record in records)
    notes = "".join(f"**Refined 2026-11-22**, `{record}`:\n\nLesson of {record}.\n\n" for record in records)
    text = wall(second).visible_text(f"## Evidence\n\n{rows}\n## Generalization\n\n{notes}End.\n")
    assert first.name not in text.replace(second.name, "")
    assert text.count(second.name) == 3
    assert text.endswith("End.\n")


def test_the_brief_says_what_is_hidden_and_names_no_lessons(campaigns: tuple[Campaign, Campaign]) -> None:
    _, second = campaigns
    page = second.project.knowledge / f"experience/cpu/{OP}/toy.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("lessons")
    line = firewall.visibility_line(second)
    assert "is hidden: 2 versions, 1 campaign, 1 page of lessons" in line
    assert "is visible" in firewall.visibility_line(campaigns[0])
    assert brief.lesson_pages(state.read_state(second)) == []


def test_a_report_says_that_a_campaign_is_contaminated(campaigns: tuple[Campaign, Campaign]) -> None:
    _, second = campaigns
    campaign_kit.Script({"v3": "ACCEPT"}).round(second)
    pages.render_campaign(second)
    report = second.folder / "report.md"
    assert "was hidden from its agents" in report.read_text()
    assert "Contaminated" not in report.read_text()
    (second.folder / firewall.READS).write_text('{"path": "kernels/x", "reader": "main", "at": "2026-11-')
    pages.render_campaign(second)
    assert "**Contaminated**: 1 read of" in report.read_text()
