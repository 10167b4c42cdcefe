"""Commands of warpsmith and targets of make, wherever texts hold them."""

from __future__ import annotations

import pytest

from tools.textlint.commands import call_problem
from tools.textlint.shell import find_calls

RIGHT = [
    "warpsmith",
    "warpsmith --help",
    "warpsmith knowledge",
    "warpsmith ...",
    "warpsmith *",
    "warpsmith COMMAND --json",
    "warpsmith <command> --anything",
    "warpsmith knowledge search|show",
    "warpsmith knowledge search WORDS --language LANG",
    "warpsmith learn --nothing|--add|--refine",
    "warpsmith status [--campaign NAME] [--json]",
    "warpsmith judge <path to a solution> --against=cpp/v1",
    "warpsmith plan --change -3 --hypothesis 'Loops, --threads and vectors.'",
    "warpsmith plan --predict",
    "warpsmith restart --undo",
    "warpsmith next | head -3",
    "warpsmith next; warpsmith status",
    "WARPSMITH_CAMPAIGN=x .venv/bin/warpsmith next  # it's due",
    "warpsmith schema > out.json",
    "pip install warpsmith --upgrade",
    "cd warpsmith && ls --all",
    'warpsmith learn --nothing "$(date --utc)"',
]
WRONG = {
    "warpsmith jugde x": "`warpsmith` has no command `jugde`; write `judge`",
    "warpsmith knowledge serch x": "`warpsmith knowledge` has no command `serch`; write `search`",
    "warpsmith knowledge search|shaw": "`warpsmith knowledge` has no command `shaw`; write `show`",
    "warpsmith restart --undoo": "`warpsmith restart` has no option `--undoo`; write `--undo`",
    "warpsmith learn --nothing|--ad": "`warpsmith learn` has no option `--ad`; write `--add`",
    "warpsmith status [--jsn]": "`warpsmith status` has no option `--jsn`; write `--json`",
    "warpsmith next softmax": "`warpsmith next` takes 0 arguments, not 1; see `warpsmith next --help`",
    "warpsmith next --json softmax": "`warpsmith next` takes 0 arguments, not 1; see `warpsmith next --help`",
    "warpsmith --zzz": "`warpsmith` has no option `--zzz`; see `warpsmith --help`",
    "if warpsmith zzz; then": "`warpsmith` has no command `zzz`; see `warpsmith --help`",
    "x=$(warpsmith zzz --json)": "`warpsmith` has no command `zzz`; see `warpsmith --help`",
    "make demo && warpsmith zzz": "`warpsmith` has no command `zzz`; see `warpsmith --help`",
    '"${CLAUDE_PLUGIN_ROOT}"/bin/warpsmith zzz': "`warpsmith` has no command `zzz`; see `warpsmith --help`",
}


@pytest.mark.parametrize("text", RIGHT)
def test_a_command_that_exists(text):
    assert [call_problem(call) for call in find_calls(text, "warpsmith")] in ([], [None], [None, None])


@pytest.mark.parametrize(("text", "problem"), WRONG.items())
def test_a_command_that_does_not_exist(text, problem):
    (call,) = find_calls(text, "warpsmith")
    assert "; ".join(call_problem(call) or ()) == problem


def test_commands_of_a_longer_script():
    text = "cd x  # warpsmith none\nwarpsmith plan --predict 0.1 \\\n  --metric dram_pct\n$ warpsmith next\n"
    assert list(find_calls(text, "warpsmith")) == [
        (2, ["plan", "--predict", "0.1", "--metric", "dram_pct"]),
        (4, ["next"]),
    ]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("README.md", "\nRun `warpsmith zzz`.\n", 7),
        ("README.md", "\n```\nwarpsmith next\nwarpsmith zzz\n```\n", 9),
        ("README.md", "\n```bash\nwarpsmith zzz\n```\n", 8),
        ("skills/optimize/SKILL.md", "\nNow: !`warpsmith zzz || true`\n", 10),
        ("skills/optimize/SKILL.md", "\n```!\nwarpsmith zzz\n```\n", 11),
    ],
)
def test_commands_in_markdown(house, path, text, line):
    house.add(path, text)
    assert house.one().startswith(f"{path}:{line}: `warpsmith` has no command `zzz`")


def test_text_blocks_are_left_alone(house):
    house.add("README.md", "\n```text\nwarpsmith zzz\n```\n")
    assert house.found() == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("hooks/hooks.json", "hook answer", "zzz answer"),
        (".claude/settings.json", "warpsmith *", "warpsmith zzz *"),
        ("skills/optimize/SKILL.md", "Bash(warpsmith next *)", "Bash(warpsmith zzz *)"),
        ("agents/profiler.md", "tools: Read, Bash", "tools: Read, Bash(warpsmith zzz)"),
    ],
)
def test_commands_elsewhere(house, path, old, new):
    house.change(path, old, new)
    assert house.one().startswith(f"{path}:")
    assert "has no command `zzz`" in house.one()


def test_commands_in_the_package_s_messages(house):
    house.write("warpsmith/x.py", 'a = f"run `warpsmith judge {path} --json`"\nb = f"or `warpsmith zzz {path}`"\n')
    assert house.one().startswith("warpsmith/x.py:2: `warpsmith` has no command `zzz`")


def test_a_target_that_the_makefile_lacks(house):
    house.add("README.md", "\n`make check`, `make VENV=x check` or `make demo`\n")
    assert house.one().startswith("README.md:7: the Makefile has no target `demo`.")
