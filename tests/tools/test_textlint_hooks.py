"""hooks.json and the answers that its SubagentStop checks."""

from __future__ import annotations

import json

import pytest

PATH = "hooks/hooks.json"
AGENT = "agents/profiler.md"


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("/bin/warpsmith", "/bin/gone", ":9: the hook's script bin/gone does not exist"),
        ('\\"${CLAUDE_PLUGIN_ROOT}\\"/bin/', "", ":9: `warpsmith hook answer` runs no script of the plugin"),
        ("^warpsmith:profiler$", "^profiler$", ":3: `warpsmith:profiler`: SubagentStop misses this agent"),
    ],
)
def test_the_file(house, old, new, finding):
    house.change(PATH, old, new)
    assert house.one().startswith(f"{PATH}{finding}")


def test_a_matcher_that_does_not_compile(house):
    house.change(PATH, "^warpsmith:profiler$", "warpsmith:(profiler")
    assert house.found()[1].startswith(f"{PATH}:5: the matcher `warpsmith:(profiler` does not compile")


def test_an_agent_that_owes_no_answer(house):
    text = (house.root / AGENT).read_text()
    house.write("agents/helper.md", text.replace("profiler", "helper"))
    assert house.found() == []
    house.change(PATH, "^warpsmith:profiler$", "^warpsmith:")
    assert house.one().startswith(
        f"{PATH}:3: `warpsmith:helper`: SubagentStop matches this agent, which owes no answer"
    )


def test_an_agent_that_answers_freely(house):
    house.write("warpsmith/driver/answers/kinds.py", 'ANSWERS = {"profiler": None}\n')
    assert "matches this agent, which owes no answer" in house.one()


def test_an_answer_of_an_agent_that_does_not_exist(house):
    house.change("warpsmith/driver/answers/kinds.py", '{"profiler"', '{"ghost": "version", "profiler"')
    assert house.one().startswith("warpsmith/driver/answers/kinds.py:1: `ghost`")


def test_hooks_of_other_kinds_need_no_script(house):
    data = json.loads((house.root / PATH).read_text())
    data["hooks"]["Stop"] = [{"hooks": [{"type": "prompt", "prompt": "Is it done?", "timeout": 5}]}]
    house.write(PATH, json.dumps(data))
    assert house.found() == []
