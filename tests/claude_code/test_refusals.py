"""What goes wrong ends in a clear message, and nothing is lost: hooks, answers, and bad input."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import pytest
from harness import REPOSITORY, run_claude
from messages_api import Actor, Call, bash, text, tool
from screenplay import CPP, DEFINITION, PROFILER, WRONG, main, profile_answer, spawn

EDIT = ("--allowedTools", "Bash,Edit,Write")

PROFILE = profile_answer(
    {
        "language": "cpp",
        "version": "v1",
        "stages": [
            {"name": "256k", "seconds": 0.0236, "dram_pct": 1, "bottleneck": "latency", "issue": "1 % of it"}
        ],
        "bottleneck": "latency",
        "root_cause": "Every element is stored eight times before it is used.",
        "opportunities": [
            {
                "name": "Vectorise the loop",
                "gain_pct": 75,
                "trigger": {"name": "vectorized_loops", "value": 0},
                "entry": "simd-vectorization",
            }
        ],
    }
)


def test_the_definition_is_not_the_designers(tmp_path, campaign, work):
    path = work / "kernels" / "scale" / "definition.py"
    loose = DEFINITION.replace("Tolerance()", "Tolerance(relative=1.0)")
    turns = [
        [tool("Write", file_path=str(path), content=loose)],
        [bash(f"sed -i s/Tolerance/Loose/ {path}")],
        [tool("Write", file_path=str(work / "kernels/scale/cpp/v1.cpp"), content=WRONG)],
        [text("It is what the hook let me do.")],
        [text("It is what the hook let me do.")],
    ]
    actors = [Actor("designer", CPP, turns), main([spawn("warpsmith:cpp-specialist", "go")], [text("end")])]
    result = run_claude(tmp_path, "go", actors, *EDIT, cwd=work)
    result.api.played_out()
    first, second, third = result.api.calls("designer")[3].results
    for refused, words in (first, second):
        assert refused
        assert f"kernels/scale/definition.py is the definition that {campaign.name} judges by" in words
    assert not third[0]
    assert path.read_text() == DEFINITION
    assert (work / "kernels/scale/cpp/v1.cpp").read_text() == WRONG


def test_a_person_who_has_switched_the_hooks_off(tmp_path, campaign, work):
    path = work / "kernels" / "scale" / "definition.py"
    turns = [tool("Write", file_path=str(path), content="# mine\n")], [text("end")]
    result = run_claude(tmp_path, "go", [main(*turns)], *EDIT, cwd=work, env={"WARPSMITH_HOOKS": "off"})
    result.api.played_out()
    assert path.read_text() == "# mine\n"


def test_an_invalid_answer_is_sent_back_once(tmp_path, work):
    actor = Actor("profiler", PROFILER, [[text("It is memory bound, I think.")], [text(PROFILE)]])
    result = run_claude(
        tmp_path, "go", [actor, main([spawn("warpsmith:profiler", "profile v1")], [text("end")])], cwd=work
    )
    result.api.played_out()
    asked = result.api.calls("profiler")[1].said_by("user")
    assert "the answer is not a valid `profile`" in asked
    assert "no ```json block" in asked
    assert "`warpsmith answer show profile`" in asked
    assert '"bottleneck": "latency"' in result.api.calls("main")[1].last


def test_an_answer_that_never_fits_is_sent_back_no_more(tmp_path, work):
    actor = Actor("profiler", PROFILER, [[text("It is memory bound.")], [text("It is, really.")]])
    result = run_claude(
        tmp_path, "go", [actor, main([spawn("warpsmith:profiler", "profile v1")], [text("end")])], cwd=work
    )
    result.api.played_out()
    assert "It is, really." in result.api.calls("main")[1].last


def test_a_model_that_stops_early(tmp_path, campaign, work):
    """It is sent back with the phase and the command, once for each step; then it may stop."""

    def ended(call: Call):
        return [text("I am done."), text(f"MARK {call.n}")]

    turns = [bash("warpsmith resume")], ended, [text("The user wants to stop here.")]
    result = run_claude(tmp_path, "go on", [main(*turns)], *EDIT, cwd=work)
    result.api.played_out()
    asked = result.api.calls()[2].said_by("user")
    assert f"{campaign.name} is at DESIGN of round 1" in asked
    assert f"warpsmith next --campaign {campaign.name}" in asked
    assert result.result["result"] == "The user wants to stop here."


def test_a_chat_beside_the_campaign_may_end(tmp_path, campaign, work):
    result = run_claude(tmp_path, "hi", [main([bash("warpsmith status")], [text("bye")])], *EDIT, cwd=work)
    result.api.played_out()


def test_a_campaign_held_by_another_process(tmp_path, campaign, work):
    holder = (
        "import sys, time\nfrom warpsmith import project\nfrom warpsmith.campaign.history import store\n"
        "with store.hold_campaign(store.find_campaign(project.find_project(), None), 'another loop'):\n"
        "    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder], cwd=work, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            turns = [bash("warpsmith resume")], [text("held")], [text("held")]
            result = run_claude(tmp_path, "go", [main(*turns)], *EDIT, cwd=work)
        finally:
            process.kill()
    failed, words = result.api.calls()[1].results[0]
    assert failed
    assert "another loop" in words
    assert str(process.pid) in words


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("warpsmith start nothing --target cpu --language cpp", 3, "kernels/nothing/definition.py"),
        ("warpsmith start scale --target h200 --language triton", 4, "h200"),
        ("warpsmith start scale --target cpu --language cutedsl", 2, "CuTe DSL does not run on a CPU"),
        ("warpsmith resume", 2, "There is no campaign in "),
    ],
)
def test_bad_input(tmp_path, work, command, code, words):
    before = sorted(work.rglob("*"))
    result = run_claude(tmp_path, "go", [main([bash(command)], [text("end")])], *EDIT, cwd=work)
    result.api.played_out()
    failed, said = result.api.calls()[1].results[0]
    assert failed
    assert f"Exit code {code}" in said
    assert words in said
    changed = [path for path in sorted(work.rglob("*")) if path not in before]
    assert not [path for path in changed if "__pycache__" not in str(path) and ".warpsmith" not in str(path)]


def test_a_missing_lab(tmp_path, work):
    """The plugin as installed, on a machine where no environment holds the lab."""
    plugin = tmp_path / "plugin"
    for part in (".claude-plugin", "agents", "bin", "hooks", "skills"):
        shutil.copytree(REPOSITORY / part, plugin / part)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (bare / "python3").chmod(0o755)
    env = {"PATH": f"{bare}:/usr/bin:/bin", "VIRTUAL_ENV": ""}
    began = time.monotonic()
    turns = [bash("ls")], [text("end")]
    result = run_claude(
        tmp_path, "/warpsmith:status", [main(*turns)], "--allowedTools", "Bash", plugin=plugin, env=env, cwd=work
    )
    result.api.played_out()
    said = result.api.calls()[0].said_by("user")
    assert "the lab is not installed in any environment" in said
    assert not result.api.calls()[1].results[0][0]  # hooks do not stand in the way
    assert time.monotonic() - began < 60
