"""`warpsmith program analyze`: what it prints, what it keeps, and the exit codes of bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.program.analysis import analyzer
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.analysis.throughput import StepWork

STEP = """
import sys
import torch

weight = torch.nn.Parameter(torch.ones(int(sys.argv[1]) if sys.argv[1:] else 8))

def train_step():
    loss = (weight * 2).sum()
    loss.backward()
    return loss

def nan_step():
    return (weight / 0 * 0).sum()

def memory_step():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
"""


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_programs: None):
    """`called(*arguments)`: the exit code of `warpsmith program analyze`, in a project with `train.py`."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text(STEP)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "program", "analyze", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0)

    return run


def test_the_analysis_is_printed_and_kept(called, capsys, tmp_path):
    assert called("train.py", "--step", "train_step", "--steps", "2", "--", "16") == 0
    out, err = capsys.readouterr()
    assert "Primary bottleneck: " in out
    assert "Recommendations:" in out
    assert "Record: devlog/programs/train.train_step/analyses/001.json" in err
    kept = Analysis.model_validate_json(
        (tmp_path / "devlog/programs/train.train_step/analyses/001.json").read_bytes()
    )
    assert (kept.subject.args, kept.facts.parameters) == (("16",), 16)
    assert (tmp_path / "train.py").read_text() == STEP
    assert (tmp_path / ".warpsmith/.gitignore").read_text() == "*\n"
    assert "/*/trials/open/" in (tmp_path / "devlog/programs/.gitignore").read_text()


def test_a_loss_that_is_nan_is_a_finding_and_exit_code_1(called, capsys, tmp_path):
    assert called("train.py", "--step", "nan_step", "--json") == 1
    assert "NaN" in json.loads(capsys.readouterr().out)["findings"][0]
    assert (tmp_path / "devlog/programs/train.nan_step/analyses/001.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("train.py",), 2, "Give --step NAME"),
        ((), 2, "Give a Python file"),
        (("absent.py", "--step", "train_step"), 3, "no program absent.py"),
        (("train.py", "--step", "no_step"), 2, "it has train_step, nan_step, memory_step"),
        (("train.py", "--step", "memory_step"), 4, "runs out of memory as it stands"),
        (("train.py", "--step", "train_step", "--timeout", "0.1"), 5, "took more than 0.1 s"),
        (("--command", "exit 3"), 1, "failed with exit code 3"),
    ],
)
def test_bad_input_is_one_sentence_and_keeps_nothing(called, capsys, tmp_path, arguments, code, says):
    assert called(*arguments) == code
    out, err = capsys.readouterr()
    assert says in err
    assert err.count("\n") == 1
    assert out == ""
    assert not (tmp_path / "devlog").exists()
    assert (tmp_path / "train.py").read_text() == STEP


def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(called, capsys, tmp_path):
    (tmp_path / "devlog").write_text("a file")
    assert called("train.py", "--step", "train_step") == 2
    assert "devlog/programs/train.train_step/analyses cannot be written" in capsys.readouterr().err
    assert not (tmp_path / ".warpsmith").exists()


def test_arguments_reach_the_analysis(called, monkeypatch):
    asked = []

    def analyse(*given, **options):
        asked.append((given[1], options))
        raise SystemExit(0)

    monkeypatch.setattr(analyzer, "analyze_program", analyse)
    words = ("--setup", "ready", "--steps", "3", "--seed", "7", "--timeout", "9", "--per-step", "8 tokens")
    called("train.py", "--step", "train_step", *words)
    program, options = asked[0]
    assert (program.step, program.setup, program.args) == ("train_step", "ready", ())
    work = StepWork(count=8, unit="tokens")
    assert options == {"steps": 3, "seed": 7, "timeout": 9.0, "work": work}
