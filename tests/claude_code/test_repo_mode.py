"""A kernel in its own repository, in the real Claude Code: one round kept, one rolled back, and the report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import repo_kit
from harness import run_claude
from messages_api import Actor, Block, Call, bash, saying, text, tool
from screenplay import main, spawn

from warpsmith.repo import store

EDITOR = saying("You are Warpsmith's repository editor.")


@dataclass
class Driver:
    """Does what `Next:` says for a number of rounds, then ends the campaign."""

    rounds: int
    opening: list[Sequence[Block]] = field(default_factory=list)
    closed: int = 0
    judge: str = ""

    def __call__(self, call: Call) -> Sequence[Block]:
        if self.opening:
            return self.opening.pop(0)
        last = call.last
        if self.judge:
            command, self.judge = self.judge, ""
            return [bash(command)]
        if "# " in last and "report.md" in last:
            return [text("MARK-DONE")]
        self.closed += bool(re.search(r"^Round \d+: ", last, re.MULTILINE))
        due = re.search(r"Next: (.*); then (warpsmith repo \w+.* --campaign \w+)$", last, re.MULTILINE)
        assert due, last
        needs, command = due[1], due[2]
        option = f"--campaign {command.rpartition(' ')[2]}"
        if command.startswith("warpsmith repo judge"):
            self.judge = command
            return [spawn("warpsmith:repo-editor", f"Fewer steps. Next: {needs}")]
        if command.startswith("warpsmith repo close"):
            return [bash(f'warpsmith repo close --learn "The cost follows the number of steps." {option}')]
        if self.closed == self.rounds:
            return [bash(f"warpsmith repo validate {option} && warpsmith repo report {option}")]
        return [bash(f'warpsmith repo plan --hypothesis "Fewer steps cost less." --predict 0.2 {option}')]


def editor(sources: list[str]) -> Actor:
    """Writes the kernel in the worktree that it was given."""
    left = list(sources)

    def turn(call: Call) -> Sequence[Block]:
        path = re.search(r"\.warpsmith/repo/\w+/edit/\S+\.py", call.said_by("user"))
        assert path, call.said_by("user")[-1000:]
        if not call.results:
            return [tool("Read", file_path=path[0])]
        if len(call.results) == 1:
            return [tool("Write", file_path=path[0], content=left.pop(0))]
        return [text("The number of steps is smaller.")]

    return Actor("editor", EDITOR, [turn], loop=True)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_repo(tmp_path):
    """No permission is given beyond those of the command itself, and the user's checkout stays as it was."""
    work = repo_kit.make(tmp_path / "work")
    before = repo_kit.git(work, "rev-parse", "HEAD"), (work / repo_kit.KERNEL).read_text()
    driver = Driver(2, [[bash("warpsmith repo check")], [bash("warpsmith repo start fewer")]])
    actors = [editor([repo_kit.faster(2), repo_kit.faster(9)]), main(driver, loop=True)]
    result = run_claude(tmp_path, f"/warpsmith:repo {repo_kit.KERNEL}", actors, cwd=work, timeout=280)
    assert result.api.errors == []
    assert not result.result["permission_denials"], result.result["permission_denials"]
    assert "MARK-DONE" in result.result["result"]
    campaign = store.find_repo_campaign(store.find_repo_project(work), None)
    assert [stored.record.verdict.accepted for stored in campaign.closed_rounds()][-2:] == [True, False]
    assert (repo_kit.git(work, "rev-parse", "HEAD"), (work / repo_kit.KERNEL).read_text()) == before
    assert "STEPS = 2" in repo_kit.git(work, "show", f"{campaign.manifest.branch}:{repo_kit.KERNEL}")
