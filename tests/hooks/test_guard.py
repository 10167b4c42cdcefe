"""What the guard lets an agent write while a campaign is at work, and after."""

from __future__ import annotations

import json

import pytest

from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.hooks import open_work

OURS = "warpsmith:kernel-designer"


@pytest.mark.parametrize(
    "place",
    [
        "kernels/scale/definition.py",
        "kernels/scale/toy/v1.toy",
        "kernels/scale/toy/v2.toy",
        "docs/knowledge/optimizations/mine.md",
        "docs/knowledge/hardware/measured/cpu.json",
        "devlog/README.md",
        "devlog/scale/{campaign}/manifest.yaml",
        "devlog/scale/{campaign}/rounds/001/record.json",
        "devlog/scale/{campaign}/rounds/open/verdict.json",
    ],
)
@pytest.mark.parametrize("agent", ["", OURS])
def test_what_the_lab_alone_writes(at_work, write, place, agent):
    assert write(place.format(campaign=at_work.name), agent) == "deny"


@pytest.mark.parametrize(
    "place", ["kernels/scale/toy/v3.toy", "kernels/new_op/definition.py", ".warpsmith/note.md"]
)
def test_what_a_round_is_for(at_work, write, place):
    assert write(place, OURS) == "allow"


@pytest.mark.parametrize("place", ["tests/test_a.py", "src/tests/b.py", "warpsmith.toml"])
def test_a_person_is_asked_and_an_agent_is_refused(at_work, write, place):
    assert write(place) == "ask"
    assert write(place, OURS) == "deny"
    assert write(place, "general-purpose") == "ask"


def test_the_lab_itself(at_work, ask, monkeypatch, project):
    from warpsmith.hooks import guard

    monkeypatch.setattr(guard, "_LAB", project.root / "lab")
    event = {"tool_name": "Edit", "tool_input": {"file_path": "lab/gate/judge.py"}, "agent_type": OURS}
    assert ask("guard", **event)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_relative_way_and_a_link_lead_to_the_same_file(at_work, ask, project):
    (project.root / "link").symlink_to(project.kernels / "scale")
    for name in ("docs/../kernels/scale/definition.py", "link/definition.py"):
        answer = ask("guard", tool_name="Edit", tool_input={"file_path": name})
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_an_open_verdict_seals_the_version(at_work, write, kit):
    kit.Script({"v3": "ACCEPT"}).until(at_work, "outcome")
    assert write("kernels/scale/toy/v3.toy") == "deny"
    assert write("kernels/scale/toy/v4.toy") == "allow"


def test_another_campaigns_operator(campaign, write, project, kit):
    finish(campaign, kit, project)
    other = project.kernels / "other" / "definition.py"
    other.parent.mkdir()
    other.write_text("# another\n")
    start.start_campaign(project, "other", "cpu", "toy")
    assert write("kernels/other/toy/v1.toy") == "allow"
    assert write("kernels/scale/toy/v2.toy") == "deny"


def test_the_sources_of_a_repositorys_campaign_are_its_workbench(at_work, write):
    assert write("devlog/repo/rms/src/ops/rms_norm.py") == "allow"
    assert write("devlog/repo/rms/tests/test_rms_norm.py") == "deny"
    assert write("devlog/repo/rms/rounds/001/record.json") == "deny"
    assert write("devlog/repo/src/x.py") == "deny"


def finish(campaign, kit, project):
    kit.change_manifest(campaign.folder, "max_iterations: null", "max_iterations: 1")
    kit.Script({"v1": "ACCEPT"}).run(store.find_campaign(project, campaign.name))


def test_no_campaign_at_work_no_objection(campaign, write, kit, project):
    finish(campaign, kit, project)
    assert write("devlog/README.md") == "allow"
    assert write("kernels/scale/definition.py") == "allow"


def test_switched_off(at_work, write, monkeypatch):
    monkeypatch.setenv("WARPSMITH_HOOKS", "off")
    assert write("devlog/README.md") == "allow"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("rm -rf devlog", "deny"),
        ("cat a && rm kernels/scale/toy/v1.toy", "deny"),
        ("echo '{}' > devlog/scale/x.json", "deny"),
        ("warpsmith status >> devlog/README.md", "deny"),
        ("echo a | tee docs/knowledge/index.md", "deny"),
        ("sed -i s/1/2/ kernels/scale/definition.py", "deny"),
        ("cp /dev/null kernels/scale/definition.py", "deny"),
        ("mv kernels/scale/toy/v1.toy kernels/scale/toy/v3.toy", "deny"),
        ("dd if=/dev/null of=devlog/README.md", "deny"),
        ("cp kernels/scale/toy/v1.toy kernels/scale/toy/v3.toy", "allow"),
        ("sed s/1/2/ kernels/scale/definition.py", "allow"),
        ("cat devlog/README.md 2>/dev/null", "allow"),
        ("grep -r 'a > b' devlog", "allow"),
        ("warpsmith judge kernels/scale/toy/v3.toy", "allow"),
        ("echo 'it is unbalanced", "allow"),
        ("pytest > tests/log.txt", "ask"),
    ],
)
def test_shell_commands(at_work, ask, command, decision):
    answer = ask("guard", tool_name="Bash", tool_input={"command": command})
    assert answer.get("hookSpecificOutput", {}).get("permissionDecision", "allow") == decision


def test_the_reason_says_what_to_do(at_work, ask):
    answer = ask("guard", tool_name="Write", tool_input={"file_path": "kernels/scale/toy/v1.toy"})
    reason = answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "kernels/scale/toy/v1.toy" in reason
    assert "warpsmith next" in reason


@pytest.mark.parametrize("event", ["", "[]", "{", json.dumps({"cwd": "/nowhere"}), json.dumps({"tool_input": 7})])
def test_an_event_that_does_not_read_is_no_objection(event, capsys):
    import io

    from warpsmith.hooks import run

    out = io.StringIO()
    assert run.run_hook("guard", io.StringIO(event), out) == 0
    assert out.getvalue() == ""


def test_a_broken_configuration_is_no_objection(at_work, write, project):
    (project.root / "warpsmith.toml").write_text("= broken")
    assert write("devlog/README.md") == "allow"


def test_one_search_for_the_campaign_serves_all_writes(at_work, ask, monkeypatch):
    """It reads the files of every campaign of the project."""
    search, searches = open_work.current_campaign, []
    monkeypatch.setattr(open_work, "current_campaign", lambda found: searches.append(found) or search(found))
    counts = []
    for command in ("rm a", "rm a b c", "rm -r .warpsmith/tmp a b"):
        searches.clear()
        assert ask("guard", tool_name="Bash", tool_input={"command": command}) == {}
        counts.append(len(searches))
    assert len(set(counts)) == 1, counts
