"""The plugin loads in the real Claude Code, whichever way a user brings it in: once each, and all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import frontmatter
import pytest
from harness import REPOSITORY, Result, run_claude, trust
from messages_api import Actor, anyone, bash, text

from tools.claude_cli import claude_command


def declared(kind: str) -> set[str]:
    """Names as Claude Code gives them, read from the files."""
    pages = REPOSITORY.glob("agents/*.md" if kind == "agents" else "skills/*/SKILL.md")
    matters = [frontmatter.load(str(page)).metadata for page in pages]
    typed = [m for m in matters if kind == "agents" or m.get("user-invocable", True)]
    return {f"warpsmith:{matter['name']}" for matter in typed}


def quiet(*turns: object) -> list[Actor]:
    return [Actor("main", anyone, list(turns) or [[text("ok")]])]  # type: ignore[arg-type]


def loaded(result: Result) -> None:
    """Exactly what the files declare is there, once, under one name."""
    assert not result.init.get("plugin_errors")
    agents = [name for name in result.init["agents"] if "warpsmith" in name]
    commands = [name for name in result.init["slash_commands"] if "warpsmith" in name]
    assert sorted(agents) == sorted(declared("agents"))
    assert sorted(commands) == sorted(declared("skills"))
    assert not {name.removeprefix("warpsmith:") for name in agents} & set(result.init["agents"])


def test_plugin_dir(tmp_path):
    result = run_claude(
        tmp_path, "go", quiet([bash("command -v warpsmith")], [text("end")]), "--allowedTools", "Bash"
    )
    result.api.played_out()
    loaded(result)
    assert result.api.calls()[1].last == str(REPOSITORY / "bin" / "warpsmith")
    listing = result.api.calls()[0].said_by("system")
    assert all(f"- {name}: " in listing for name in declared("agents"))


def test_marketplace_and_install(tmp_path, clean_copy):
    home = tmp_path / "home"
    for words in (["marketplace", "add", str(clean_copy)], ["install", "warpsmith@warpsmith-market"]):
        done = claude_command(home, "plugin", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    listed = json.loads(claude_command(home, "plugin", "list", "--json", cwd=tmp_path).stdout)
    assert [(x["id"], x["enabled"]) for x in listed] == [("warpsmith@warpsmith-market", True)]
    loaded(run_claude(tmp_path, "hi", quiet(), plugin=None))


def test_opening_the_repository(tmp_path, clean_copy):
    env = {"CLAUDE_CODE_SYNC_PLUGIN_INSTALL": "1"}
    before = run_claude(tmp_path, "hi", quiet(), plugin=None, cwd=clean_copy, env=env)
    assert not [name for name in before.init["agents"] if "warpsmith" in name]  # not trusted, not loaded
    trust(tmp_path / "home", clean_copy)
    after = run_claude(tmp_path, "hi", quiet(), plugin=None, cwd=clean_copy, env=env)
    loaded(after)
    assert [x["path"] for x in after.init["plugins"] if x["name"] == "warpsmith"] == [str(clean_copy / "plugin")]


def test_agents_get_their_prompt_their_tools_and_their_skills(tmp_path):
    """Each agent as the main thread, as `claude --agent` starts it."""
    for page in sorted(REPOSITORY.glob("agents/*.md")):
        agent = frontmatter.load(str(page))
        name = f"warpsmith:{agent['name']}"
        result = run_claude(tmp_path / page.stem, "hi", quiet(), "--agent", name)
        (call,) = result.api.calls()
        assert agent.content.splitlines()[0] in call.system, name
        granted = {"Task" if tool.strip() == "Agent" else tool.strip() for tool in str(agent["tools"]).split(",")}
        offered = {"Task" if tool == "Agent" else tool for tool in call.tools}
        assert offered <= granted | {"ToolSearch", "DeferredToolPlaceholder"}, name


namespaces = (
    sys.platform == "linux" and not subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode
)


@pytest.mark.skipif(not namespaces, reason="no network namespaces here")
def test_nothing_but_loopback_is_needed(tmp_path):
    """A run in a network namespace that has loopback and nothing else."""
    script = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(REPOSITORY)!r}]
from pathlib import Path
from harness import run_claude
from messages_api import Actor, anyone, bash, text
turns = [[bash("warpsmith --version")], [text("ok")]]
result = run_claude(Path({str(tmp_path)!r}), "go", [Actor("main", anyone, turns)], "--allowedTools", "Bash")
result.api.played_out()
print(result.rc, result.api.calls()[1].last)
"""
    command = f'ip link set lo up && exec {sys.executable} -B -c "$1"'
    done = subprocess.run(
        ["unshare", "-rn", "bash", "-c", command, "_", script], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["0", "0.1.0"], done.stderr
