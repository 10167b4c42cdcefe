"""`warpsmith graph check`: the table, the verdict, JSON, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.cli.program import graph_format
from warpsmith.program.capture import check as graph_check
from warpsmith.program.capture.models import Blocker, CaptureAttempt, CoveredModule, GraphCheck

PROGRAM = """\
import torch
from torch import nn

model = nn.Linear(4, 4)
x = torch.randn(2, 4)


def step():
    loss = model(x).sum()
    return loss.item()
"""


@pytest.fixture
def called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forked_programs: None
):
    """`called(*arguments)`: exit code, stdout and stderr."""
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "graph", "check", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0), *capsys.readouterr()

    return run


def test_the_table_has_the_line_and_the_verdict_its_evidence(called):
    code, out, _ = called("train.py", "--step", "step", "--no-capture")
    assert code == 0
    (row,) = (line for line in out.splitlines() if "train.py:10" in line)
    cells = re.split(r" {2,}", row)
    assert cells[:3] == ["certain", "`.item()`", "train.py:10 step"]
    assert cells[3] == "blocks: the host waits for a value of the device"
    assert cells[4] == "keep it a tensor; read it after the replay"
    assert cells[5].strip() in ("run on cpu", "run on gpu")
    assert re.search(r"expected: partly \(modules model: Linear, .+\(evidence: run on [cg]pu\)", out)


def test_json_is_the_record(called):
    code, out, _ = called("train.py", "--step", "step", "--no-capture", "--json")
    check = GraphCheck.model_validate_json(out)
    assert code == 0
    assert (check.program, check.step, check.files) == ("train.py", "step", ("train.py",))
    assert [(one.kind, one.line) for one in check.blockers] == [("host-read", 10)]
    assert json.loads(out)["verdict"] == "partly"


def test_the_options_reach_the_check(called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    asked = {}

    def checked(program, **options):
        asked.update(options, program=program)
        return check()

    monkeypatch.setattr(graph_check, "check_graph", checked)
    given = ("--setup", "ready", "--steps", "6", "--no-capture", "--timeout", "9", "--", "--width", "8")
    code, out, _ = called("train.py", "--step", "step", *given)
    assert code == 0
    assert "partly (evidence: capture)" in out
    program = asked["program"]
    assert (program.path, program.step, program.setup) == (tmp_path / "train.py", "step", "ready")
    assert program.args == ("--width", "8")
    assert (asked["attempt"], asked["steps"], asked["timeout"]) == (False, 6, 9.0)
    assert asked["log"].name == "graph.txt"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("train.py",), 2, "which callable is one step?"),
        (("none.py", "--step", "step"), 3, "There is no program none.py"),
        (("train.py", "--step", "other"), 2, "it has no step `other`: it has step"),
        (("train.py", "--step", "step", "--steps", "1"), 2, "Invalid value for '--steps'"),
    ],
)
def test_misuse_is_one_sentence(called, arguments: tuple[str, ...], code: int, words: str):
    ended, out, err = called(*arguments)
    assert (ended, out) == (code, "")
    assert words in err


def check(**fields: object) -> GraphCheck:
    blocker = Blocker(
        kind="host-read", effect="blocks", certainty="certain", what="`.item()`", file="a.py", line=3,
        function="step", code="loss.item()", why="why", mend="mend", seen=("run on gpu",),
    )  # fmt: skip
    given: dict[str, object] = {
        "program": "a.py", "step": "step", "device": "a GPU", "torch": "2.11", "level": "capture", "steps": 4,
        "files": ("a.py",), "blockers": (blocker,), "verdict": "partly", **fields,
    }  # fmt: skip
    return GraphCheck.model_validate(given)


def test_attempts_tell_what_they_gained(capsys: pytest.CaptureFixture[str]):
    whole = CaptureAttempt(what="step", captured=False, error="RuntimeError: no")
    part = CaptureAttempt(
        what="model", captured=True, steps=5, difference=1e-6, equal=True, eager_seconds=3e-3, replay_seconds=1e-3
    )
    wrong = CaptureAttempt(what="head", captured=True, steps=5, difference=0.5, noise=0.0, equal=False)
    failed = CaptureAttempt(what="tail", captured=True, error="replay 2 of 5 fails: no", equal=False)
    covered = (CoveredModule(name="model", kind="Net", share=0.8, tried=True),)
    graph_format.print_graph_check(
        check(whole=whole, parts=(part, wrong, failed), covered=covered, notes=("a note",))
    )
    out = capsys.readouterr().out
    assert "step: not captured: RuntimeError: no" in out
    assert "model: captured, 5 replays" in out
    assert "eager 3.00 ms, graph 1.00 ms" in out
    assert "head: captured, but replays differ from eager steps (difference 5.0e-01)" in out
    assert "tail: captured, but replay 2 of 5 fails: no\n" in out
    assert "partly (modules model: Net, 80.0 % of the step) (evidence: capture)" in out
    assert out.rstrip().endswith("note: a note")


def test_a_step_without_blockers_is_said_so(capsys: pytest.CaptureFixture[str]):
    whole = CaptureAttempt(what="step", captured=True, steps=5, difference=0.0, equal=True)
    graph_format.print_graph_check(check(blockers=(), verdict="captures whole", whole=whole))
    out = capsys.readouterr().out
    assert out.startswith("no blocker was found\nstep: captured")
    assert "(difference 0.0e+00); not timed: the step cannot" in out
    assert "\ncaptures whole (evidence: capture)" in out
