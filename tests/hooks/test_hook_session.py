"""A session that starts beside an open campaign is told so in one line; every other one is told nothing."""

from __future__ import annotations

from warpsmith.campaign.history import store


def told(ask) -> str:
    return ask("session", source="startup").get("hookSpecificOutput", {}).get("additionalContext", "")


def test_an_open_campaign(at_work, ask):
    line = told(ask)
    assert line.startswith(f"Campaign {at_work.name} is open at DESIGN of round 3; /warpsmith:resume ")
    assert ask("session", source="resume")["systemMessage"] == line


def test_no_campaign(project, ask):
    assert ask("session", source="startup") == {}


def test_a_finished_campaign(campaign, ask, kit, project):
    kit.change_manifest(campaign.folder, "max_iterations: null", "max_iterations: 1")
    kit.Script({"v1": "ACCEPT"}).run(store.find_campaign(project, campaign.name))
    assert told(ask) == ""
