"""Whole programs in the real Claude Code: one optimization by name, and what is due one after the other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from harness import run_claude
from messages_api import Actor, text, tool
from program_play import (
    CAUSAL,
    FUSED,
    NEVER_REDUCED,
    PROGRAM,
    RANKS,
    ROW_BY_ROW,
    TRAIN,
    TRAIN_RANKS,
    Pilot,
    make_program,
    measuring,
    specialist,
)
from screenplay import main, spawn

from warpsmith import backups
from warpsmith import project as projects
from warpsmith.program.trials.trial_store import Trials

STEP = "train.py --step train_step"


def play(
    tmp_path: Path, command: str, pilot: Pilot, *actors: Actor, text: str = TRAIN, name: str = "train.train_step"
) -> Trials:
    """No permission is given beyond those of the command itself: a user is asked nothing on the way."""
    work = make_program(tmp_path / "work", text)
    result = run_claude(tmp_path, command, [*actors, main(pilot, loop=True)], cwd=work, timeout=600)
    assert result.api.errors == []
    assert not result.result["permission_denials"], result.result["permission_denials"]
    assert "MARK-DONE" in result.result["result"]
    assert backups.standing_backups(projects.find_project(work)) == ()
    return Trials(projects.find_project(work), name)


@pytest.mark.long
def test_apply(tmp_path):
    """The one that is named runs, computes the same and is slower: the file is as it was."""
    entry = "scaled-dot-product-attention"
    pilot = Pilot([[measuring(f"warpsmith program apply {entry} {STEP}")]])
    actor = specialist({entry: ROW_BY_ROW}, checks=True)
    trials = play(tmp_path, f"/warpsmith:apply {entry} {STEP}", pilot, actor)
    assert pilot.log == ["RESTORED"]
    assert (tmp_path / "work" / "train.py").read_text() == TRAIN
    (record,) = trials.records().values()
    assert record.plan.entry == entry
    assert record.decision.reason.startswith("slower: ")


@pytest.mark.long
def test_apply_to_ranks(tmp_path):
    """The distributed specialist is sent; its edit leaves out every reduction, and the ranks are named."""
    entry = "one-reduction-per-step"
    run = f"--command '{sys.executable} -m torch.distributed.run --nproc_per_node 2 train.py'"
    pilot = Pilot([[measuring(f"warpsmith program apply {entry} {run}")]])
    actor = specialist({entry: NEVER_REDUCED}, checks=True, matches=RANKS)
    trials = play(
        tmp_path, f"/warpsmith:apply {entry} {run}", pilot, actor, text=TRAIN_RANKS, name="train.__main__"
    )
    assert pilot.log == ["RESTORED"]
    assert (tmp_path / "work" / "train.py").read_text() == TRAIN_RANKS
    (record,) = trials.records().values()
    assert record.decision.reason.startswith("wrong numerics: ranks: ranks 0 and 1 hold ")


@pytest.mark.long
def test_autopilot(tmp_path):
    """The first of the ranking is kept; the next one computes something else and is rolled back; then the sum."""
    opening = [tool("Skill", skill="warpsmith:apply")], [measuring(f"warpsmith program analyze {STEP}")]
    pilot = Pilot(list(opening), 2, "warpsmith program report")
    edits = {"fused-optimizer": FUSED, "scaled-dot-product-attention": CAUSAL}
    actor = specialist(edits, checks=False)
    trials = play(tmp_path, f"/warpsmith:autopilot {STEP}, two trials at most", pilot, actor)
    assert pilot.log == ["apply", "KEPT", "analyze", "apply", "RESTORED"]
    assert (tmp_path / "work" / "train.py").read_text() == TRAIN.replace(*FUSED)
    first, second = trials.records().values()
    assert (first.plan.entry, second.plan.entry) == tuple(edits)
    assert second.decision.reason.startswith("wrong numerics: ")
    total = trials.total()
    assert total is not None
    assert total.comparison.interval.low > 1
    assert (trials.folder.parent / "README.md").is_file()


def test_a_specialist_keeps_to_its_trial(tmp_path):
    """Nobody gave a permission: what the open trial names is granted by the hook, and nothing else is."""
    work = make_program(tmp_path / "work")
    (work / "model.py").write_text("mine\n")
    turns = [
        [tool("Write", file_path=str(work / "train.py"), content="without a trial")],
        [tool("Write", file_path=str(work / "model.py"), content="not named")],
        [tool("Write", file_path=str(work / "train.py"), content="named\n")],
        [text("done")],
    ]

    def opened(call):
        """After the first refusal somebody opens a trial."""
        folder = work / "devlog/programs/train/trials/open"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text(json.dumps({"files": [{"path": "train.py"}]}))
        backups.open_backups(projects.find_project(work), [work / "train.py"], "by hand")
        return turns[1]

    actor = Actor("specialist", PROGRAM, [turns[0], opened, *turns[2:]])
    script = [spawn("warpsmith:program-specialist", "go")], [text("end")]
    result = run_claude(tmp_path, "go", [actor, main(*script)], cwd=work)
    result.api.played_out()
    (alone, first), (unnamed, second), (granted, third) = result.api.calls("specialist")[3].results
    assert (alone, unnamed, granted) == (True, True, False), (first, second, third)
    assert "train.py is edited only within a trial" in first
    assert "model.py is not named in the open trial" in second
    assert (work / "train.py").read_text() == "named\n"
    assert (work / "model.py").read_text() == "mine\n"
