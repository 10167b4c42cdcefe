"""Parts of the claude designer that need no session: agents' pages, what a session cost, and what is missing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpsmith import project as projects
from warpsmith.core.claims.quantities import Quantities
from warpsmith.driver.answers.models import EXAMPLES
from warpsmith.driver.claude import agents as claude_agents
from warpsmith.driver.claude import designer as claude
from warpsmith.driver.claude import process as claude_process
from warpsmith.driver.claude.reply import AgentReply
from warpsmith.errors import AgentStopped, MachineLacks, MissingInput, Misuse

sdk = pytest.importorskip("claude_agent_sdk")
PLUGIN = projects.SHIPPED

MODEL_USAGE = {
    "m-1": {"inputTokens": 1, "cacheCreationInputTokens": 2, "cacheReadInputTokens": 3, "outputTokens": 4},
    "m-2": {"inputTokens": 10, "cacheCreationInputTokens": 20, "cacheReadInputTokens": 30, "outputTokens": 40},
}


def result(**changes: Any) -> Any:
    told = {
        "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": 3,
        "session_id": "s", "total_cost_usd": 0.5, "model_usage": MODEL_USAGE, "result": "Done.",
    }  # fmt: skip
    return sdk.ResultMessage(**(told | changes))


def message(error: str | None = None) -> Any:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 8, "output_tokens": 1}
    return sdk.AssistantMessage(content=[], model="m-1", error=error, usage=usage)


@pytest.mark.parametrize("page", sorted((PLUGIN / "agents").glob("*.md")), ids=lambda path: path.stem)
def test_every_agent_of_the_plugin_loads_with_its_skills(page: Path):
    agent = claude_agents.load_agent(PLUGIN, page.stem)
    assert agent.address == f"warpsmith:{page.stem}"
    assert agent.description
    assert agent.tools
    assert agent.model
    assert agent.prompt.count("\n# ") >= 1, "a page without a skill"


def test_a_skill_is_added_once():
    once = claude_agents.load_agent(PLUGIN, "orchestrator", ["learn-from-round"])
    twice = claude_agents.load_agent(PLUGIN, "orchestrator", ["learn-from-round", "orchestrate"])
    assert once == twice
    assert once.prompt.count("# Learn from a round") == 1


@pytest.mark.parametrize(("agent", "skill"), [("nobody", "orchestrate"), ("orchestrator", "nothing")])
def test_what_the_plugin_lacks_is_named(agent: str, skill: str):
    with pytest.raises(MissingInput, match=r"nobody\.md|nothing/SKILL\.md"):
        claude_agents.load_agent(PLUGIN, agent, [skill])


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({}, "done"),
        ({"subtype": "error_max_turns", "is_error": True, "terminal_reason": "max_turns"}, "turns"),
        ({"subtype": "error_max_budget_usd", "is_error": True}, "budget"),
        ({"is_error": True, "terminal_reason": "api_error", "api_error_status": 529}, "api"),
        ({"subtype": "error_during_execution", "is_error": True}, "died"),
    ],
)
def test_how_a_session_ended(changes: dict[str, Any], ending: str):
    assert AgentReply(result=result(**changes)).ending == ending
    assert AgentReply(result=result(**changes), interrupted=True).ending == "interrupted"


def test_what_a_session_cost_is_over_all_of_its_models():
    spend = AgentReply(seconds=2.04, result=result(), messages={"a": message()}).spend("LEARN", "reviewer")
    assert (spend.input_tokens, spend.cache_write_tokens, spend.cache_read_tokens) == (11, 22, 33)
    assert (spend.output_tokens, spend.usd, spend.turns, spend.seconds) == (44, 0.5, 3, 2.0)
    assert spend.models == ("m-1", "m-2")


def test_a_session_that_died_tells_tokens_and_no_dollars():
    heard = AgentReply(messages={"a": message(), "b": message(), "c": message("server_error")})
    spend = heard.spend("DESIGN", "kernel-designer")
    assert (spend.input_tokens, spend.cache_read_tokens, spend.usd, spend.turns) == (21, 24, None, 3)
    assert (spend.ended, spend.models) == ("died", ("m-1",))


def test_what_went_wrong_is_one_sentence():
    assert (
        AgentReply(result=result(is_error=True, result="API Error: 529\n  busy")).complaint
        == "API Error: 529 busy."
    )
    said = AgentReply(result=result(is_error=True, result=None, errors=["no\nway."])).complaint
    assert said == "no way."
    out = AgentReply(result=result(result="Not logged in"), messages={"a": message("authentication_failed")})
    assert out.complaint.startswith("Not logged in.")
    assert "ANTHROPIC_API_KEY" in out.complaint
    assert AgentReply(fault="Failed to start").complaint == "Failed to start."
    silent = AgentReply()
    silent.stderr.append("killed")
    assert silent.complaint == "killed."


def test_the_sdk_is_asked_for_by_one_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(MachineLacks, match="pip install 'claude-agent-sdk>="):
        claude_process.require_claude()


def test_without_a_carried_cli_the_one_on_path_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sdk, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineLacks, match="on PATH"):
        claude_process.require_claude()
    found = tmp_path / "claude"
    found.write_text('#!/bin/sh\necho started "$@" $DATABASE_URL $ANTHROPIC_API_KEY\n')
    found.chmod(0o755)
    claude_process.require_claude()
    monkeypatch.setenv("DATABASE_URL", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    with claude_process.launcher() as path, os.popen(f"{path} 'a b' c") as told:
        assert told.read() == "started a b c key\n"
    assert not path.exists()


def test_the_first_language_is_the_only_one_that_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(projects, "SHIPPED", PLUGIN)
    here = projects.find_project(PLUGIN)
    assert claude.first_language(here, "cpu") == "cpp"
    monkeypatch.setattr(claude, "target_languages", lambda *_: ["one", "two"])
    with pytest.raises(Misuse, match="--language to start in on cpu; these fit: one, two"):
        claude.first_language(here, "cpu")


def test_a_review_with_an_invented_figure_is_sent_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = projects.find_project(tmp_path)
    state = SimpleNamespace(campaign=SimpleNamespace(project=project))
    monkeypatch.setattr(claude.open_round, "round_quantities", lambda state: Quantities.of({"speedup": 1.25}))
    monkeypatch.setattr(claude.claude_prompts, "review_prompt", lambda state, refused: refused)
    answers = [
        EXAMPLES["review"] | {"reason": f"The gain of {figure} comes from the kernel."}
        for figure in ("9.7x", "1.25x")
    ]
    asked: list[str] = []

    def ask(question: Any) -> Any:
        asked.append(question.prompt)
        return SimpleNamespace(text=f"```json\n{json.dumps(answers[len(asked) - 1])}\n```\n")

    designer = SimpleNamespace(
        tries=2, _ask=ask, _agent=lambda name: name, _refusal=lambda text: text, _read_rules=lambda: ()
    )
    review = claude.ClaudeDesigner._request_review(designer, state)
    assert "1.25x" in review.reason
    assert asked[0] == ""
    assert "`9.7x`" in asked[1]


def test_contenders_share_what_is_left_of_the_budget(tmp_path: Path):
    campaign = SimpleNamespace(project=projects.find_project(tmp_path), name="c")
    designer = claude.ClaudeDesigner(campaign, "m-1", budget=8.0)
    designer.charge(None, [AgentReply(result=result(total_cost_usd=2.0)).spend("DESIGN", "an-earlier-run")])
    first, second = designer.recipe(3), designer.recipe(2)
    assert (first.budget, second.budget) == (2.0, 2.0)
    assert designer._budget_left() == 2.0
    designer.charge(None, [AgentReply(result=result(total_cost_usd=2.0)).spend("LEARN", "reviewer")])
    with pytest.raises(AgentStopped, match=r"budget of \$8.00 is spent"):
        designer.recipe(1)
    designer.charge(first, [AgentReply(result=result(total_cost_usd=0.5)).spend("DESIGN", "kernel-designer")])
    assert designer._budget_left() == 1.5
    made = second.create(campaign, print)
    assert (made._budget, made._settings.model) == (2.0, "m-1")


def test_without_a_budget_contenders_have_none(tmp_path: Path):
    campaign = SimpleNamespace(project=projects.find_project(tmp_path), name="c")
    recipe = claude.ClaudeDesigner(campaign).recipe(2)
    assert recipe.budget is None
    assert recipe.create(campaign, print)._budget is None
