"""What the guard lets an agent write of a program: the files that the open trial names, and no others."""

from __future__ import annotations

import json

import pytest

from warpsmith import backups
from warpsmith.hooks import open_work

SPECIALISTS = [
    "warpsmith:program-specialist", "warpsmith:cuda-graph-specialist", "warpsmith:distributed-specialist"
]  # fmt: skip
ANYBODY = ["", "general-purpose", "warpsmith:kernel-designer"]


@pytest.fixture
def program(project):
    """A program of two files, outside of any trial."""
    for name in ("train.py", "model.py"):
        (project.root / name).write_text("mine\n")
    return project.root / "train.py"


@pytest.fixture
def trial(program, project):
    """An open trial that names one of them, backed up; its folder."""
    folder = project.devlog / "programs" / "train" / "trials" / "open"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps({"files": [{"path": "train.py"}, {"path": "new.py"}]}))
    backups.open_backups(project, [program, project.root / "new.py"], "trial")
    return folder


def decision(answer) -> str:
    return answer.get("hookSpecificOutput", {}).get("permissionDecision", "none")


@pytest.mark.parametrize("agent", SPECIALISTS)
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_a_specialist_edits_what_the_trial_names_unasked(trial, ask, agent, tool):
    for name in ("train.py", "new.py"):
        answer = ask("guard", tool_name=tool, tool_input={"file_path": name}, agent_type=agent)
        assert decision(answer) == "allow"


@pytest.mark.parametrize("agent", SPECIALISTS)
def test_and_nothing_else_of_the_project(trial, write, agent, tmp_path):
    assert write("model.py", agent) == "deny"
    assert write("other/new.py", agent) == "deny"
    assert write(".warpsmith/scratch.py", agent) == "allow"  # which is no objection here
    assert write(str(tmp_path / "elsewhere.py"), agent) == "allow"


@pytest.mark.parametrize("agent", SPECIALISTS)
@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("sed -i s/a/b/ model.py", "deny"),
        ("echo a >> devlog/programs/train/README.md", "deny"),
        ("sed -i s/a/b/ train.py", "none"),  # the shell is asked for as ever
        ("warpsmith program check a b 2>/dev/null", "none"),
    ],
)
def test_in_a_shell_too(trial, ask, agent, command, wanted):
    assert decision(ask("guard", tool_name="Bash", tool_input={"command": command}, agent_type=agent)) == wanted


@pytest.mark.parametrize("agent", SPECIALISTS)
def test_no_trial_no_edit(program, ask, write, agent):
    assert write("train.py", agent) == "deny"
    answer = ask("guard", tool_name="Edit", tool_input={"file_path": "train.py"}, agent_type=agent)
    assert "`warpsmith program apply` opens one" in answer["hookSpecificOutput"]["permissionDecisionReason"]


def test_a_judged_trial_is_no_more_edited(trial, write):
    (trial / "record.json").write_text("{}")
    assert write("train.py", SPECIALISTS[0]) == "deny"


def test_no_backup_no_edit(trial, project, program, write):
    backups.keep_edits(project, [program])
    assert write("train.py", SPECIALISTS[0]) == "deny"
    assert write("new.py", SPECIALISTS[0]) == "allow"


@pytest.mark.parametrize("plan", ["", "{}", "[]", '{"files": [1]}'])
def test_a_plan_that_does_not_read_names_nothing(trial, write, plan):
    (trial / "plan.json").write_text(plan)
    assert write("train.py", SPECIALISTS[0]) == "deny"


@pytest.mark.parametrize("agent", [*ANYBODY, *SPECIALISTS])
def test_records_and_backups_are_the_labs_while_a_trial_is_open(trial, write, agent):
    assert write("devlog/programs/train/trials/open/plan.json", agent) == "deny"
    assert write("devlog/programs/train/README.md", agent) == "deny"
    assert write(".warpsmith/backups/journal/0001-open.json", agent) == "deny"


@pytest.mark.parametrize("agent", ANYBODY)
def test_nobody_else_is_granted_or_refused_anything(trial, program, ask, project, agent):
    for name in ("train.py", "model.py"):
        answer = ask("guard", tool_name="Edit", tool_input={"file_path": name}, agent_type=agent)
        assert decision(answer) == "none"


def test_a_closed_trial_is_not_listed(trial, project):
    assert open_work.open_trials(project) == [trial]
    trial.rename(trial.with_name("001"))
    assert open_work.open_trials(project) == []
