"""The main thread of a short campaign stays small: the lab says what is due, and nothing is made twice."""

from __future__ import annotations

import json

import pytest
from harness import run_claude
from messages_api import bash, tool
from screenplay import FAST, SLOW, Orchestrator, designer, main, reviewer

START = "warpsmith start scale --target cpu --language cpp --max-iterations 2 --peer none"

MOST_BYTES = 1_800_000
"""Sum over all requests; it was 3.6 MB in 37 turns when every phase began with `warpsmith next`."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_rounds(judging, scripted_clock, tmp_path):
    opening = [bash("warpsmith doctor")], [bash(START)], [tool("Skill", skill="warpsmith:orchestrate")]
    loop = Orchestrator(list(opening))
    actors = [reviewer(2), designer([SLOW, FAST]), main(loop, loop=True)]
    result = run_claude(
        tmp_path, "/warpsmith:optimize scale cpu cpp", actors, cwd=judging, env=scripted_clock, timeout=550
    )
    assert result.api.errors == []
    assert not result.result["permission_denials"], result.result["permission_denials"]
    assert "MARK-DONE" in result.result["result"]
    calls = result.api.calls("main")
    size = sum(len(json.dumps(call.body)) for call in calls)
    assert size < MOST_BYTES, f"{size} bytes in {len(calls)} turns"
