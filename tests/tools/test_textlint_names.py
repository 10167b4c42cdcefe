"""Names of agents and skills, in texts and in fields."""

from __future__ import annotations

import pytest

SKILL, AGENT = "skills/optimize/SKILL.md", "agents/profiler.md"


@pytest.mark.parametrize("path", ["README.md", SKILL, AGENT])
def test_a_qualified_name_that_does_not_exist(house, path):
    house.add(path, "Then call warpsmith:profilr.\n")
    assert "`warpsmith:profilr` is neither an agent nor a skill" in house.one()


def test_a_qualified_name_in_json(house):
    house.write(".claude/settings.json", '{"permissions": {"allow": [\n"Skill(warpsmith:optimise)"]}}')
    assert house.one().startswith(".claude/settings.json:2: `warpsmith:optimise` is neither")


@pytest.mark.parametrize(
    "text", ["warpsmith:optimize", "`/warpsmith:optimize`", "warpsmith: a word", "warpsmith::DType"]
)
def test_what_is_no_wrong_name(house, text):
    house.add("README.md", f"{text}\n")
    assert house.found() == []


@pytest.mark.parametrize(
    "text", ['subagent_type: "profiler"', "`subagent_type=profiler`", '{"subagent_type": "profiler"}']
)
def test_a_subagent_type_without_the_plugin(house, text):
    house.add(SKILL, f"{text}\n")
    assert house.one() == (
        f"{SKILL}:9: the subagent_type `profiler` lacks the plugin's name. Fix: write `warpsmith:<agent>`."
    )


def test_a_subagent_type_with_the_plugin(house):
    house.add(SKILL, "subagent_type: `warpsmith:profiler`, or `subagent_type: <agent>`\n")
    assert house.found() == []


def test_a_preloaded_skill_that_does_not_exist(house):
    house.change(AGENT, "skills: [optimize]", "skills: [optimize, levers]")
    assert house.one().startswith(f"{AGENT}:7: there is no skill `levers`.")


def test_a_preloaded_skill_for_people_only(house):
    house.change(SKILL, "allowed-tools:", "disable-model-invocation: true\nallowed-tools:")
    assert house.one().startswith(f"{AGENT}:7: `optimize` is for people only")


@pytest.mark.parametrize("agent", ["profiler", "warpsmith:other"])
def test_a_fork_into_an_agent_that_does_not_exist(house, agent):
    house.change(SKILL, "allowed-tools:", f"context: fork\nagent: {agent}\nallowed-tools:")
    assert house.found()[-1].startswith(f"{SKILL}:5: `{agent}` is not an agent, so another one runs")


def test_a_fork_into_an_agent(house):
    house.change(SKILL, "allowed-tools:", "context: fork\nagent: warpsmith:profiler\nallowed-tools:")
    assert house.found() == []
