"""A campaign that withholds entries at random: what its agents see, and what its records say."""

from __future__ import annotations

import json
from pathlib import Path

import campaign_kit
import pytest

from warpsmith.campaign import experiment, start
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import open_round
from warpsmith.cli import knowledge
from warpsmith.core.knowledge import SECTIONS
from warpsmith.errors import Misuse
from warpsmith.knowledge import hit_rates
from warpsmith.project import Project
from warpsmith.reporting import pages

QUESTION = ["scale"]
IDS = ("first", "second", "third", "fourth")
ENTRY = """\
---
id: {id}
title: Scale the rows in the {id} way
kind: optimization
scope: language
language: toy
category: memory
applies_to: {{targets: [cpu], ops: [any]}}
metrics: [dram_pct]
evidence:
  - {{source: external, citation: "A report", url: "https://example.org/report"}}
status: active
---
{sections}
"""


@pytest.fixture
def project(project: Project) -> Project:
    """The kit's project with four entries that fit its operator, and a symptom that leads to two of them."""
    sections = "\n\n".join(f"## {name}\nWords." for name in SECTIONS)
    for id in IDS:
        path = project.knowledge / "languages/toy/optimizations" / f"{id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ENTRY.format(id=id, sections=sections))
    symptom = {"title": "Slow", "means": "Words.", "shows": {"dram_pct": "low"}, "optimizations": IDS[:2]}
    (project.knowledge / "symptoms.yaml").write_text(json.dumps({"symptoms": [symptom]}))
    return project


@pytest.fixture
def withheld() -> tuple[str, ...]:
    return IDS[1:3]


@pytest.fixture
def campaign(project: Project, withheld: tuple[str, ...]) -> Campaign:
    return start.start_campaign(project, campaign_kit.OP, "cpu", "toy", peers=(), withheld=withheld)


def test_half_of_the_entries_are_drawn(project: Project):
    draws = {experiment.draw_withheld(project, "cpu") for _ in range(40)}
    assert all(set(draw) < set(IDS) and len(draw) == 2 for draw in draws)
    assert len(draws) > 1


def test_one_entry_is_no_experiment(project: Project):
    for id in IDS[1:]:
        (project.knowledge / "languages/toy/optimizations" / f"{id}.md").unlink()
    with pytest.raises(Misuse, match="--experiment"):
        experiment.draw_withheld(project, "cpu")


def test_agents_find_the_others_only(
    campaign: Campaign,
    withheld: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(campaign.project.root)
    knowledge.knowledge_search_command(QUESTION, limit=99, as_json=True)
    hits = [hit["id"] for hit in json.loads(capsys.readouterr().out)["hits"]]
    assert sorted(hits) == ["first", "fourth"]
    knowledge.knowledge_symptoms_command(as_json=True)
    symptoms = json.loads(capsys.readouterr().out)["symptoms"]
    assert [row["optimizations"] for row in symptoms] == [["first"]]
    with pytest.raises(Misuse, match=campaign.name):
        knowledge.knowledge_show_command(withheld[0])


def test_a_plan_cannot_apply_a_withheld_entry(campaign: Campaign, withheld: tuple[str, ...]):
    script = campaign_kit.Script({"v1": "ACCEPT"})
    script.round(campaign)
    script.until(campaign, "plan")
    with pytest.raises(Misuse, match=withheld[0]):
        open_round.record_plan(campaign, campaign_kit.plan(entries=(withheld[0],)))


def test_records_name_the_draw_and_the_report_the_experiment(campaign: Campaign, withheld: tuple[str, ...]):
    script = campaign_kit.Script({"v1": "ACCEPT", "v2": "ACCEPT"})
    script.round(campaign)
    script.round(campaign)
    path = campaign.folder / "rounds/002/record.json"
    draw = json.loads(path.read_bytes())["draw"]
    assert (sorted(draw["shown"]), sorted(draw["withheld"])) == (["first", "fourth"], sorted(withheld))
    pages.render_campaign(campaign)
    report = (campaign.folder / "report.md").read_text()
    assert f"{len(withheld)} entries" in report.partition("## ")[0]


def test_two_campaigns_give_an_effect(campaign: Campaign, withheld: tuple[str, ...]):
    project = campaign.project
    script = campaign_kit.Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"})
    script.round(campaign)
    script.round(campaign)
    path = campaign.folder / "rounds/002/record.json"
    record = json.loads(path.read_bytes())
    draw = record["draw"]
    other = Path(project.devlog, campaign_kit.OP, "other", "rounds", "002", "record.json")
    other.parent.mkdir(parents=True)
    swapped = {"shown": draw["withheld"], "withheld": draw["shown"]}
    outcome = record["outcome"] | {"gain": 0.0}
    other.write_text(json.dumps(record | {"campaign": "other", "draw": swapped, "outcome": outcome}))
    rate = hit_rates.hit_rates_by_entry(project)[draw["shown"][0]]
    assert rate.effect is not None
    assert (rate.effect.shown, rate.effect.withheld) == (1, 1)
    assert rate.effect.gain == pytest.approx(record["outcome"]["gain"])


def test_a_campaign_without_the_setting_draws_nothing(project: Project):
    plain = start.start_campaign(project, campaign_kit.OP, "cpu", "toy", peers=())
    assert "withheld" not in (plain.folder / "manifest.yaml").read_text()
    assert experiment.fitting_draw(plain, QUESTION, "toy") is None
