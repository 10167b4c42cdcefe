"""One screenplay for each slash command beside /warpsmith:optimize: what reaches the model, and what it may do."""

from __future__ import annotations

import json

import pytest
from harness import run_claude
from messages_api import bash, text
from screenplay import SLOW, main, profiler

from warpsmith.driver.answers import message

RECORDED = "rmsnorm-cpp-cpu-20261121"


def asked(result) -> str:
    """What the user's command became."""
    result.api.played_out()
    assert result.rc == 0
    assert not result.result["permission_denials"]
    return result.api.calls()[0].said_by("user")


def test_status(tmp_path, campaign, work):
    said = asked(run_claude(tmp_path, "/warpsmith:status", [main([text("ok")])], cwd=work))
    assert f"{campaign.name}: scale on cpu, due: DESIGN" in said
    assert "produces kernels/scale/cpp/v1.cpp" in said


def test_report(tmp_path, recorded):
    said = asked(run_claude(tmp_path, f"/warpsmith:report {RECORDED}", [main([text("ok")])], cwd=recorded))
    assert "5 rounds, 2 rolled back" in said


def test_restart(tmp_path, recorded):
    turns = [bash("warpsmith status --campaign " + RECORDED)], [bash(f"warpsmith restart --campaign {RECORDED}")]
    result = run_claude(tmp_path, f"/warpsmith:restart {RECORDED}", [main(*turns, [text("ok")])], cwd=recorded)
    assert RECORDED in asked(result)
    assert "Masked rounds" in result.api.calls()[-1].last
    masks = json.loads((recorded / "devlog" / "rmsnorm" / RECORDED / "masks.json").read_text())
    assert 1 not in masks["masked"]


def test_knowledge(tmp_path, work):
    turns = (
        [bash("warpsmith knowledge search bank conflicts")],
        [bash("warpsmith knowledge show bank-conflict-padding-swizzle")],
    )
    question = "/warpsmith:knowledge what helps against bank conflicts?"
    result = run_claude(tmp_path, question, [main(*turns, [text("ok")])], cwd=work)
    assert "what helps against bank conflicts?" in asked(result)
    first, second = (out for _, out in result.api.calls()[-1].results)
    assert "bank-conflict-padding-swizzle" in first
    assert "## Mechanism" in second


def test_doctor(tmp_path, work):
    said = asked(run_claude(tmp_path, "/warpsmith:doctor", [main([text("ok")])], cwd=work))
    assert "Ready" in said


@pytest.mark.slow
def test_profile(tmp_path, judging, forked_commands):
    """The command runs in the profiler, whose answer is the command's."""
    version = judging / "kernels" / "scale" / "cpp" / "v1.cpp"
    version.parent.mkdir()
    version.write_text(SLOW)
    actor = profiler()
    actor.turns.insert(0, [bash("warpsmith profile kernels/scale/cpp/v1.cpp --target cpu --json")])
    asking = "/warpsmith:profile kernels/scale/cpp/v1.cpp cpu"
    result = run_claude(tmp_path, asking, [actor], cwd=judging, env=forked_commands)
    assert result.api.errors == []
    assert "kernels/scale/cpp/v1.cpp cpu" in result.api.calls("profiler")[0].said
    assert message.list_faults("profile", result.result["result"]) == []
    assert not result.result["permission_denials"]
