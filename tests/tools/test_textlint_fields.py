"""Front matter of skills and agents, and the budgets."""

from __future__ import annotations

import pytest

SKILL, AGENT = "skills/optimize/SKILL.md", "agents/profiler.md"


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("Use when", "For when", f"{SKILL}:3: the description does not say when to use the skill"),
        ("a faster kernel.", "<k>", f"{SKILL}:3: `description`: String should match"),
        ("a faster kernel.", "k" * 250, f"{SKILL}:3: `description`: String should have at most 250 characters"),
        ("allowed-tools:", "alowed-tools:", f"{SKILL}:4: `alowed-tools`: is not a known field"),
        (
            "allowed-tools:",
            "user-invocable: maybe\nallowed-tools:",
            f"{SKILL}:4: `user-invocable`: Input should be",
        ),
        ("allowed-tools:", "context: spoon\nallowed-tools:", f"{SKILL}:4: `context`: Input should be 'fork'"),
        (", Read", ", Rad", f"{SKILL}:4: there is no tool `Rad`"),
    ],
)
def test_a_skill(house, old, new, finding):
    house.change(SKILL, old, new)
    assert house.one().startswith(finding)


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("model: haiku\n", "", f"{AGENT}:1: `model`: is missing."),
        ("model: haiku\n", "model: best\n", f"{AGENT}:5: `model`: String should match"),
        ("maxTurns: 10\n", "", f"{AGENT}:1: `maxTurns`: is missing"),
        ("maxTurns: 10", "maxTurns: many", f"{AGENT}:6: `maxTurns`: Input should be a valid integer"),
        ("tools: Read, Bash\n", "", f"{AGENT}:1: `tools`: is missing"),
        ("tools: Read, Bash\n", "tools: [Read, Bush]\n", f"{AGENT}:4: there is no tool `Bush`"),
        (
            " Use after a version was judged.",
            "",
            f"{AGENT}:3: the description does not say when to call the agent",
        ),
        (
            "maxTurns",
            "permissionMode: plan\nmaxTurns",
            f"{AGENT}:6: `permissionMode` has no effect in a plugin's agent",
        ),
        ("maxTurns", "mcpServers: {}\nmaxTurns", f"{AGENT}:6: `mcpServers` has no effect in a plugin's agent"),
        ("maxTurns", "maxturns: 3\nmaxTurns", f"{AGENT}:6: `maxturns`: is not a known field"),
    ],
)
def test_an_agent(house, old, new, finding):
    house.change(AGENT, old, new)
    assert house.one().startswith(finding)


@pytest.mark.parametrize("tools", ["Bash(git log *), Read, mcp__plugin_x_y__z", "[Read, 'Bash(warpsmith *)']"])
def test_tools_that_exist(house, tools):
    house.change(AGENT, "tools: Read, Bash", f"tools: {tools}")
    assert house.found() == []


def test_a_name_other_than_the_folder(house):
    house.change(SKILL, "name: optimize", "name: optimise")
    assert house.one().startswith(f"{SKILL}:2: ")
    assert house.one().endswith("Fix: write `name: optimize`.")


def test_a_name_with_two_hyphens(house):
    text = (house.root / AGENT).read_text()
    house.write("agents/a--b.md", text.replace("name: profiler", "name: a--b"))
    assert house.one().startswith("agents/a--b.md:2: `name`: String should match pattern")


def test_a_key_that_stands_twice(house):
    house.change(AGENT, "maxTurns: 10", "maxTurns: 10\nmaxTurns: 20")
    assert house.one().startswith(f"{AGENT}:6: ")
    assert "the key `maxTurns` appears twice" in house.one()


def test_yaml_that_does_not_parse(house):
    house.change(AGENT, "model: haiku", "model: [haiku")
    assert house.one().startswith(f"{AGENT}:6: the front matter does not parse")


def test_no_front_matter(house):
    house.write("agents/bare.md", "You are an agent.\n")
    assert house.one().startswith("agents/bare.md:1: has no front matter")


def test_a_skill_that_is_too_long(house):
    house.add(SKILL, "\n" * (200 - 8))
    assert house.found() == []
    house.add(SKILL, "\n")
    assert house.one().startswith(f"{SKILL}:201: 201 lines, of at most 200")


def test_an_agent_that_designs_kernels_loads_a_page_at_most(house):
    house.change(SKILL, "name: optimize", "name: design-kernel")
    text = (house.root / SKILL).read_text() + "x" * 5650
    house.remove(SKILL)
    house.write("skills/design-kernel/references/levers.md", "# Levers\n")
    house.write("skills/design-kernel/SKILL.md", text)
    house.change(AGENT, "skills: [optimize]", "skills: [design-kernel]")
    house.remove("skills/optimize/references/levers.md")
    finding = house.one()
    assert finding.startswith(f"{AGENT}:")
    assert "of at most 6000" in finding


def test_a_skill_with_too_many_characters(house):
    size = len((house.root / SKILL).read_text())
    house.add(SKILL, "x" * (6000 - size - 1) + "\n")
    assert house.found() == []
    house.add(SKILL, "\n")
    assert house.one().startswith(f"{SKILL}:1: 6001 characters, of at most 6000")


def test_an_agent_that_is_too_long(house):
    house.add(AGENT, "\n" * (100 - 9))
    assert house.found() == []
    house.add(AGENT, "\n")
    assert house.one().startswith(f"{AGENT}:101: 101 lines, of at most 100")


def test_descriptions_that_are_too_long_together(house):
    for number in range(16):
        words = "Use when " + "x" * 241
        house.write(f"skills/s{number}/SKILL.md", f"---\nname: s{number}\ndescription: {words}\n---\n")
    assert "all skills' descriptions have 4069 characters, of at most 4000" in house.one()
    house.remove("skills/s1/SKILL.md")
    assert house.found() == []


def test_a_reference_that_the_skill_does_not_name(house):
    house.write("skills/optimize/references/more.md", "# More\n")
    assert house.one().startswith("skills/optimize/references/more.md:1: the skill does not name")


def test_a_reference_too_deep(house):
    house.add(SKILL, "\n[Deep](references/deep/more.md)\n")
    house.write("skills/optimize/references/deep/more.md", "# More\n")
    assert "move it to skills/optimize/references/" in house.one()
