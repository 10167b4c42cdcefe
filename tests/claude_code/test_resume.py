"""A fresh folder without git: its campaign is guarded, and a later session goes on with it unasked."""

from __future__ import annotations

import pytest
from harness import run_claude
from messages_api import bash, text, tool
from screenplay import DEFINITION, FAST, designer, main, spawn

from warpsmith import project as projects
from warpsmith.campaign import start

SLIPS = (
    "cd devlog && rm -r scale",
    "X=1 sed -i s/a/b/ kernels/scale/definition.py",
    "for f in devlog/*/*/manifest.yaml; do rm $f; done",
    "find devlog -name manifest.yaml | xargs rm",
    "bash -c 'echo > devlog/README.md'",
    "git stash -u",
)


@pytest.fixture
def plain(tmp_path):
    """A folder with an open campaign and neither git nor a marker."""
    work = tmp_path / "work"
    path = work / "kernels" / "scale" / "definition.py"
    path.parent.mkdir(parents=True)
    path.write_text(DEFINITION)
    campaign = start.start_campaign(projects.find_project(work), "scale", "cpu", "cpp", peers=())
    assert (work / "warpsmith.toml").is_file()
    (work / "warpsmith.toml").unlink()  # as a folder from before there was one
    return campaign


def test_a_new_session_is_told_and_goes_on_unasked(tmp_path, plain):
    work = plain.project.root
    turns = (
        [bash(f"warpsmith resume --campaign {plain.name}")],
        [tool("Skill", skill="warpsmith:orchestrate")],
        [bash("warpsmith brief --header")],
        [bash("warpsmith brief")],
        lambda call: [spawn("warpsmith:cpp-specialist", call.last)],
        [text("The user wants to stop here.")],
        [text("The user wants to stop here.")],
    )
    result = run_claude(tmp_path, "/warpsmith:resume", [designer([FAST]), main(*turns)], cwd=work)
    assert result.api.errors == []
    assert not result.result["permission_denials"], result.result["permission_denials"]
    said = str(result.api.calls("main")[0].body)
    assert f"Campaign {plain.name} is open at DESIGN of round 1; /warpsmith:resume" in said
    assert "struct Tensor" in str(result.api.calls("main")[3].results[-1])
    assert (work / "kernels" / "scale" / "cpp" / "v1.cpp").read_text() == FAST


def test_slips_are_refused_without_git_and_without_a_marker(tmp_path, plain):
    turns = [[bash(command)] for command in SLIPS]
    result = run_claude(
        tmp_path, "go", [main(*turns, [text("end")])], "--allowedTools", "Bash,Edit,Write", cwd=plain.project.root
    )
    result.api.played_out()
    refusals = [call.results[-1] for call in result.api.calls("main")[1:]]
    assert [failed for failed, _ in refusals] == [True] * len(SLIPS), refusals
    assert all("Warpsmith: " in words for _, words in refusals)
