"""A whole campaign in the real Claude Code: every phase, three rounds, one of them rolled back, to the report."""

from __future__ import annotations

import json

import pytest
from harness import run_claude
from messages_api import bash, tool
from screenplay import FAST, SLOW, WRONG, Orchestrator, designer, main, profiler, reviewer

from warpsmith import project as projects
from warpsmith.campaign.history import store

START = "warpsmith start scale --target cpu --language cpp --max-iterations 3 --peer none"

MOST_BYTES = 2_900_000
"""Sum over all requests of the main thread, which stays small: 2.3 MB in 24 turns; `warpsmith next` at the
beginning of every phase would double it."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_optimize(judging, scripted_clock, tmp_path):
    """No permission is given beyond those of the command itself: a user is asked nothing on the way."""
    loop = Orchestrator(
        [[bash("warpsmith doctor")], [bash(START)], [tool("Skill", skill="warpsmith:orchestrate")]]
    )
    actors = [profiler(), reviewer(3), designer([SLOW, WRONG, FAST]), main(loop, loop=True)]
    result = run_claude(
        tmp_path, "/warpsmith:optimize scale cpu cpp", actors, cwd=judging, env=scripted_clock, timeout=550
    )

    assert result.api.errors == []
    assert not result.result["permission_denials"], result.result["permission_denials"]
    assert "MARK-DONE" in result.result["result"]
    (campaign,) = store.list_campaigns(projects.find_project(judging))
    assert [record.outcome.verdict.value for record in campaign.records()] == ["ACCEPT", "ROLLBACK", "ACCEPT"]
    assert (campaign.folder / "report.md").is_file()
    assert campaign.records()[-1].outcome.best == "cpp/v3"
    baseline = ["DESIGN", "VERIFY", "VERIFY", "EVALUATE", "LEARN"]
    planned = ["PROFILE", "SELECT", "STRATEGIZE", "DESIGN", "VERIFY", "EVALUATE", "LEARN"]
    improved = ["SELECT", "STRATEGIZE", *baseline]
    # Round 1 profiled the best version at its end, so round 2 need not; round 2 left another version behind.
    assert loop.log == [*baseline, *planned[1:], "PROFILE", *improved, "REPORT", "REPORT"]
    asked = [call for call in result.api.calls("main") if "warpsmith next" in str(call.body["messages"][-1])]
    assert len(asked) <= 3
    agents = {call.actor for call in result.api.calls()}
    assert agents == {"main", "profiler", "designer", "reviewer"}
    calls = result.api.calls("main")
    size = sum(len(json.dumps(call.body)) for call in calls)
    assert size < MOST_BYTES, f"{size} bytes in {len(calls)} turns"
