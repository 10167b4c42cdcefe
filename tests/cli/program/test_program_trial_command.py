"""`warpsmith program check|apply|verify|abandon|next|report`: what they print, keep and refuse."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.cli import main as entry
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program import trial as program_trial
from warpsmith.core.trial import ProgramRules, StepTiming, TrialPlan, TrialRecord
from warpsmith.program.trials import trial, trial_files

Called = Callable[..., int]
TIMING = StepTiming(
    seconds=0.01, spread=0.02, batches=10, steps=5, first_seconds=0.5, warm_up=20, peak_bytes=2 * 10**9
)
TRAIN = "def train_step():\n    return 1.0\n"
FAST = "def train_step():\n    return 1.0  # fast\n"


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    """`called(*arguments)`: the exit code of `warpsmith program`, in a project with `train.py`; nothing is run."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trial, "_plan_trial", _measured)
    monkeypatch.setattr(trial, "_judge_edit", _judged)
    if not any(command.callback is program_trial.verify_command for command in program.app.registered_commands):
        program_trial.register(program.app)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "program", *arguments])
        try:
            entry.main()
        except SystemExit as exit_:
            return int(exit_.code or 0)
        return 0

    return run


def _measured(here, asked, timeout, tell) -> TrialPlan:
    tell("measuring")
    return TrialPlan(
        entry=asked.entry,
        rules=asked.rules,
        subject=trial.trial_store.program_reference(here, asked.program),
        files=tuple(
            {"path": here.relative(path), "before": trial_files.file_digest(path)} for path in asked.files
        ),
        others={},
        prerequisites=trial.Prerequisites(
            entry=asked.entry,
            checks=({"name": "training", "state": "ok", "evidence": "a step has 1 backward passes"},),
        ),
        predicted=asked.predicted,
        slower=asked.slower,
        baseline=TIMING,
        device="cpu",
        opened="2026-11-21 12:00",
    )


def _judged(trials, plan, timeout, tell) -> TrialRecord:
    """The edit says by a word in the file what is to become of it."""
    trial_files.refuse_invalid_edit(trials, plan)
    plan = trial_files.snapshot_edit(trials, plan)
    trial.backups.seal_backups(trials.project, trial_files.editable_paths(trials, plan))
    fast = "fast" in (trials.project.root / plan.files[0].path).read_text()
    speedup = 1.25 if fast else 0.8
    return TrialRecord.model_validate(
        {
            "plan": plan.model_dump(),
            "decision": {"verdict": "KEPT", "reason": "faster: 1.250x"} if fast else SLOWER,
            "comparisons": [
                {
                    "against": "original",
                    "other_seconds": 0.01,
                    "speedup": speedup,
                    "interval": {"low": speedup - 0.01, "high": speedup + 0.01},
                    "pairs": 10,
                }
            ],
            "original": TIMING.model_dump(),
            "edited": TIMING.model_dump() | {"seconds": 0.01 / speedup},
            "numerics": {
                "precision": "same",
                "steps": 8,
                "seed": 1,
                "checks": [{"name": "values", "worst": 0.25, "bound": 1e-4, "noise": 0}],
            },
            "closed": "2026-11-21 12:10",
        }
    )


SLOWER = {"verdict": "RESTORED", "reason": "slower: 0.800x"}
APPLY = ("apply", "fused-optimizer", "train.py", "--step", "train_step")


def test_a_trial_from_apply_to_report(called, capsys, tmp_path):
    assert called(*APPLY, "--predict", "1.3") == 0
    out = capsys.readouterr().out
    assert "fused-optimizer on train.py is open" in out
    assert "Before: 10.0 ms per step (2.0% spread), first step 500 ms" in out
    assert "Edit: train.py, and nothing else" in out
    assert "optimizations/fused-optimizer.md" in out
    assert called("next") == 0
    assert "command: warpsmith program verify train" in capsys.readouterr().out
    (tmp_path / "train.py").write_text(FAST)
    (tmp_path / "docs/knowledge").mkdir(parents=True)
    (tmp_path / "docs/knowledge/index.md").write_text("out of date\n")
    assert called("verify") == 0
    assert "out of date" not in (tmp_path / "docs/knowledge/index.md").read_text()
    out = capsys.readouterr().out
    assert out.startswith("KEPT: faster: 1.250x\n")
    assert "predicted 1.30x, measured 1.25x" in out
    assert "values: 0.25 of its bound" in out
    assert called("report", "--no-measure") == 0
    page = capsys.readouterr().out
    assert (
        "| [001](trials/001/record.json) | `fused-optimizer` | Applied | 10.0 ms | 8.00 ms | 1.25x [1.24, 1.26] |"
        " 1.30x | 2 GB to 2 GB | faster: 1.250x |"
    ) in page
    assert "Not measured for the present program" in page
    assert (tmp_path / "devlog/programs/train.train_step/README.md").read_text() == page


def test_an_edit_that_is_slower_is_restored_with_exit_code_1(called, capsys, tmp_path):
    called(*APPLY)
    (tmp_path / "train.py").write_text(TRAIN + "# slow\n")
    capsys.readouterr()
    assert called("verify", "--json") == 1
    assert json.loads(capsys.readouterr().out)["decision"] == SLOWER
    assert (tmp_path / "train.py").read_text() == TRAIN
    assert called("report") == 0
    page = capsys.readouterr().out
    assert "No optimization was kept" in page
    assert "Rolled back" in page


def test_a_trial_can_be_abandoned(called, capsys, tmp_path):
    called(*APPLY)
    (tmp_path / "train.py").write_text("broken(")
    assert called("abandon", "--because", "no way") == 0
    assert "RESTORED: abandoned: no way" in capsys.readouterr().out
    assert (tmp_path / "train.py").read_text() == TRAIN


def test_the_program_s_own_arguments_come_last(called, tmp_path):
    (tmp_path / "model.py").write_text("")
    assert called(*APPLY, "model.py", "--", "--lr", "1") == 0
    plan = trial.trial_store.find_trials(projects.find_project(tmp_path)).plan()
    assert plan is not None
    assert plan.subject.args == ("--lr", "1")
    assert [file.path for file in plan.files] == ["train.py", "model.py"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("apply", "fused-optimiser", "train.py", "--step", "s"), 2, "fused-optimizer"),
        (("apply", "operator-fusion", "train.py", "--step", "s"), 2, "is about one kernel; entries about whole"),
        (("apply", "fused-optimizer", "gone.py", "--step", "s"), 3, "There is no program gone.py"),
        (("apply", "fused-optimizer", "train.py", "--step", "s s"), 2, "bare name"),
        (
            ("apply", "fused-optimizer", "train.py", "--step", "s", "--slower", "0.3"),
            2,
            "fused-optimizer is for speed",
        ),
        (("check", "nothing", "train.py", "--step", "s"), 2, "There is no knowledge entry"),
        (("verify",), 2, "No program has a trial"),
        (("abandon", "train"), 2, "No program has a trial"),
        (("report",), 2, "No program has a trial"),
        (("next",), 3, "There is no analysis"),
    ],
)
def test_bad_input_is_one_sentence(called, capsys, arguments, code, says):
    assert called(*arguments) == code
    err = capsys.readouterr().err
    assert says in err
    assert err.startswith("warpsmith: ")
    assert err.count("\n") == 1


def test_a_conflict_is_shown(called, capsys, tmp_path, monkeypatch):
    called(*APPLY)
    (tmp_path / "train.py").write_text(TRAIN + "# slow\n")
    judged = trial._judge_edit

    def then_somebody(*arguments):
        record = judged(*arguments)
        (tmp_path / "train.py").write_text(TRAIN + "# slow, and mine\n")
        return record

    monkeypatch.setattr(trial, "_judge_edit", then_somebody)
    capsys.readouterr()
    assert called("verify") == 1
    out, err = capsys.readouterr()
    assert "+# slow, and mine" in out
    assert "The trial stays open" in err


def test_check_says_what_holds(called, capsys, monkeypatch):
    found = trial.Prerequisites(
        entry="fused-optimizer",
        checks=(
            {"name": "fusible-optimizer", "state": "ok", "evidence": "AdamW"},
            {"name": "gpu", "state": "no", "evidence": "none", "machine": True},
        ),
    )
    monkeypatch.setattr(trial, "check_before_trial", lambda *_: found)
    assert called("check", "fused-optimizer", "train.py", "--step", "train_step") == 4
    out, err = capsys.readouterr()
    assert out == "ok      fusible-optimizer  AdamW\nno      gpu                none\n"
    assert "requires that the step runs on a GPU: none." in err


def test_the_entry_s_rules_stand_in_the_plan(called, tmp_path):
    called("apply", "activation-checkpointing", "train.py", "--step", "train_step", "--slower", "0.3")
    plan = trial.trial_store.find_trials(projects.find_project(tmp_path)).plan()
    assert plan is not None
    assert plan.rules == ProgramRules(needs=("training",), sign="recomputation", purpose="memory")
    assert plan.slower == 0.3


PROGRAM = """
import time
import torch

weight = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weight], lr=0.01)
PAUSE = 0.02

def train_step():
    time.sleep(PAUSE)
    loss = ((weight * torch.rand(8)) ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""


@pytest.mark.slow
def test_the_same_with_real_processes(called, capsys, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trial.core, "shows_no_gain", lambda *_: True)  # one pair of processes is enough here
    (tmp_path / "train.py").write_text(PROGRAM)
    assert called(*APPLY, "--predict", "2") == 0
    (tmp_path / "train.py").write_text(PROGRAM.replace("0.02", "0.01").replace("lr=0.01)", "lr=0.01, fused=True)"))
    assert called("verify") == 0
    (speedup,) = re.findall(r"KEPT: faster: (\d+\.\d+)x", capsys.readouterr().out)
    assert 1 < float(speedup) < 3  # the edit halves a step of 20 ms
