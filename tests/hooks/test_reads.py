"""Reads of earlier work while a campaign hides it: agents are refused, the session's own reads are recorded."""

from __future__ import annotations

import pytest

from warpsmith.campaign import firewall, start
from warpsmith.campaign.rounds import state
from warpsmith.campaign.status import campaign_status

AGENT = "warpsmith:kernel-designer"


@pytest.fixture
def second(campaign, kit, project):
    """A campaign that hides the work of a first one with two rounds, and is at the design of its own baseline."""
    script = kit.Script({"v1": "ACCEPT", "v2": "ROLLBACK", "v3": "ACCEPT"})
    script.round(campaign)
    script.round(campaign)
    (campaign.folder / "closed.json").write_text('{"reason": "the target is gone", "at": "2026-11-21 14:05"}')
    made = start.start_campaign(project, "scale", "cpu", "toy", peers=(), earlier_work="hidden")
    script.until(made, "design")
    return made


@pytest.fixture
def read(ask):
    """`read(tool, argument, agent)`: the guard's decision."""

    def decision(tool: str, argument: str, agent: str = AGENT) -> str:
        names = {"Read": "file_path", "Bash": "command"}
        answer = ask("guard", tool_name=tool, tool_input={names.get(tool, "path"): argument}, agent_type=agent)
        return answer.get("hookSpecificOutput", {}).get("permissionDecision", "allow")

    return decision


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("Read", "kernels/scale/toy/v1.toy"),
        ("Read", "docs/../kernels/scale/toy/v2.toy"),
        ("Read", "devlog/scale/{first}/rounds/001/record.json"),
        ("Grep", "kernels/scale/toy"),
        ("Grep", "devlog/scale"),
        ("Glob", "devlog/scale/{first}"),
        ("Bash", "cat kernels/scale/toy/v1.toy | head"),
        ("Bash", "python3 -c \"print(open('kernels/scale/toy/v1.toy').read())\""),
        ("Bash", "cat kernels/*/toy/v1.toy"),
        ("Bash", "cat kern*/sc?le/t[o]y/*"),
        ("Bash", "warpsmith export scale --version toy/v1"),
        ("Bash", "cd kernels/scale/toy; cat *"),
        ("Bash", "git show HEAD~1:kernels/scale/toy/v1.toy"),
        ("Read", "docs/knowledge/experience/cpu/scale/toy.md"),
    ],
)
def test_an_agent_reads_no_earlier_work(second, campaign, read, project, tool, argument):
    page = project.knowledge / "experience/cpu/scale/toy.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("lessons")
    assert read(tool, argument.format(first=campaign.name)) == "deny"
    assert firewall.read_reads(second.folder) == ()


@pytest.mark.parametrize(
    ("tool", "argument"),
    [
        ("Read", "kernels/scale/definition.py"),
        ("Read", "kernels/scale/toy/v3.toy"),
        ("Read", "devlog/scale/{second}/manifest.yaml"),
        ("Bash", "warpsmith judge kernels/scale/toy/v3.toy --check"),
        ("Bash", "warpsmith select --language toy --because 'It has the control that it needs.'"),
        ("Bash", "warpsmith brief --campaign {second}"),
        ("Read", "docs/knowledge/index.md"),
        ("Grep", "warpsmith"),
    ],
)
def test_its_own_work_is_visible(second, read, tool, argument):
    assert read(tool, argument.format(second=second.name)) == "allow"


def test_a_command_in_the_folder_of_the_versions(second, ask, project):
    event = {"cwd": str(project.kernels / "scale/toy"), "tool_name": "Bash", "agent_type": AGENT}
    answer = ask("guard", **event, tool_input={"command": "cat v1.toy"})
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert ask("guard", **event, tool_input={"command": "cat v3.toy"}) == {}


def test_the_sessions_own_read_marks_the_campaign(second, read):
    assert read("Read", "kernels/scale/toy/v1.toy", "") == "allow"
    assert read("Bash", "head kernels/scale/toy/v1.toy", "") == "allow"
    assert [(item.path, item.reader) for item in firewall.read_reads(second.folder)] == [
        ("kernels/scale/toy/v1.toy", "main")
    ]
    status = campaign_status(state.read_state(second))
    assert status.contaminated == ("kernels/scale/toy/v1.toy",)


def test_a_campaign_that_builds_on_earlier_work_hides_none(campaign, kit, read):
    script = kit.Script({"v1": "ACCEPT"})
    script.round(campaign)
    assert read("Read", "kernels/scale/toy/v1.toy") == "allow"


@pytest.mark.parametrize(
    ("argument", "decision"),
    [
        ("docs/knowledge/optimizations/split.md", "deny"),
        ("docs/knowledge/languages/toy/optimizations/wide.md", "deny"),
        ("docs/knowledge/optimizations/other.md", "allow"),
        ("notes/split.md", "allow"),
    ],
)
def test_an_agent_reads_no_withheld_entry(campaign, kit, project, read, argument, decision):
    (campaign.folder / "closed.json").write_text('{"reason": "the target is gone", "at": "2026-11-21 14:05"}')
    start.start_campaign(project, "scale", "cpu", "toy", peers=(), withheld=("split", "wide"))
    assert read("Read", argument) == decision
    assert read("Bash", f"cat {argument}") == decision
