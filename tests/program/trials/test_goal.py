from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.errors import CorruptRecord
from warpsmith.program.trials import goal
from warpsmith.program.trials.goal import ProgramGoal
from warpsmith.program.trials.trial_store import Trials
from warpsmith.project import find_project


def test_a_goal_is_written_read_and_refused_if_it_is_torn(tmp_path: Path) -> None:
    (tmp_path / "warpsmith.toml").touch()
    trials = Trials(find_project(tmp_path), "train")
    assert goal.read_goal(trials) is None
    goal.write_goal(trials, ProgramGoal(speedup=2))
    assert goal.read_goal(trials) == ProgramGoal(speedup=2)
    (tmp_path / "devlog" / "programs" / "train" / "goal.json").write_text('{"speedup": 1}')
    with pytest.raises(CorruptRecord, match="not a valid goal"):
        goal.read_goal(trials)
