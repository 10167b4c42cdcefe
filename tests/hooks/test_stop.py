"""A session that drives a campaign or opened a trial is asked to go on, once for each step; no other is."""

from __future__ import annotations

import pytest

from warpsmith.campaign.history import store
from warpsmith.campaign.rounds import due_phase, state


def drive(ask, command: str = "warpsmith plan --hypothesis x", session: str = "session-1") -> None:
    ask("guard", tool_name="Bash", tool_input={"command": command}, session_id=session)


@pytest.mark.parametrize("verdicts", [{"v1": "ACCEPT", "v2": "ACCEPT"}, {"v1": "ROLLBACK", "v2": "ACCEPT"}])
def test_the_phase_is_the_one_that_next_names(campaign, ask, kit, verdicts):
    script, named = kit.Script(verdicts), []
    drive(ask)
    while len(campaign.records()) < 2:
        step = due_phase.find_due_phase(state.read_state(campaign))
        if step.step != "verdict":  # a version without a verdict leaves no step behind
            reason = ask("stop").get("reason", "not asked")
            assert f"is at {step.phase} of round {step.round}" in reason, step.step
            named.append(step.step)
        script.do(campaign, step)
    assert {"design", "profile_after", "outcome", "lesson"} <= set(named)


def test_learn_is_named_above_all(campaign, ask, kit):
    kit.Script({"v1": "ACCEPT"}).until(campaign, "lesson")
    drive(ask)
    reason = ask("stop")["reason"]
    assert "LEARN of round 1" in reason
    assert f"warpsmith next --campaign {campaign.name}" in reason


def test_once_a_step(campaign, ask, kit):
    drive(ask)
    assert ask("stop")["decision"] == "block"
    assert ask("stop") == {}
    kit.Script({"v1": "ACCEPT"}).until(campaign, "outcome")
    assert ask("stop")["decision"] == "block"


@pytest.mark.parametrize("command", ["warpsmith next", "warpsmith status", "echo warpsmith plan", "ls"])
def test_who_only_looks_is_left_alone(campaign, ask, command):
    drive(ask, command)
    assert ask("stop") == {}


def test_another_session_is_left_alone(campaign, ask):
    drive(ask, session="session-1")
    assert ask("stop", session_id="session-2") == {}
    assert ask("stop", session_id="../../etc") == {}


def test_the_end_is_the_end(campaign, ask, kit, project):
    kit.change_manifest(campaign.folder, "max_iterations: null", "max_iterations: 1")
    drive(ask)
    kit.Script({"v1": "ACCEPT"}).run(store.find_campaign(project, campaign.name))
    assert ask("stop") == {}


def test_the_campaign_of_the_environment(campaign, ask, monkeypatch):
    drive(ask)
    monkeypatch.setenv("WARPSMITH_CAMPAIGN", "another")
    assert ask("stop") == {}


@pytest.fixture
def trial(project):
    folder = project.devlog / "programs" / "train" / "trials" / "open"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    return folder


APPLY = "warpsmith program apply torch-compile train.py --step train_step --predict 1.2"


def test_an_open_trial_is_named_once(trial, ask):
    drive(ask, APPLY)
    reason = ask("stop")["reason"]
    assert "The trial of train is open" in reason
    assert "warpsmith program verify train" in reason
    assert 'warpsmith program abandon train --because "WHY"' in reason
    assert ask("stop") == {}


def test_a_judged_trial_is_not(trial, ask):
    drive(ask, APPLY)
    (trial / "record.json").write_text("{}")
    assert ask("stop") == {}


@pytest.mark.parametrize("command", ["warpsmith program next train", "warpsmith plan --hypothesis x"])
def test_who_opened_no_trial_is_left_alone(trial, ask, command):
    drive(ask, command)
    assert ask("stop") == {}


def test_a_campaign_is_no_matter_of_who_opened_a_trial(campaign, trial, ask):
    drive(ask, APPLY)
    assert "The trial of train" in ask("stop")["reason"]
    assert ask("stop") == {}
