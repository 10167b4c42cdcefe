"""`warpsmith program extract|integrate`: what they print, and the exit codes of bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.cli import main as entry
from warpsmith.core.evaluation import Comparison, Interval
from warpsmith.core.trial import TrialDecision, TrialVerdict
from warpsmith.errors import MissingInput
from warpsmith.program.analysis.models import amdahl_bound
from warpsmith.program.operators import extract, integrate
from warpsmith.program.operators.models import Extraction, OperatorRow, StepOperators, WorkloadCalls
from warpsmith.program.operators.transfer_record import Transfer, WorkloadTransfer

ROW = OperatorRow(name="aten::_softmax", calls=2, seconds=1e-4, share=0.25, ceiling=amdahl_bound(0.25))
VIEW = OperatorRow(name="aten::view", calls=3, seconds=0, share=0, ceiling=1, refusal="it returns a view")
OPERATORS = StepOperators(program="train.py", device="cpu", step_seconds=4e-4, rows=(ROW, VIEW))
EXTRACTION = Extraction(
    op="softmax", operator="aten::_softmax", program={"name": "train", "path": "train.py", "step": "train_step"},
    device="cpu", step_seconds=4e-4, slots=(), results=(),
    called=(WorkloadCalls(workload="8x8", calls=2, seconds=1e-4),),
)  # fmt: skip


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`called(*arguments)`: the exit code of `warpsmith program`, in a project with `train.py`."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "program", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0)

    return run


def test_without_an_operator_all_are_listed(called, capsys, monkeypatch):
    monkeypatch.setattr(extract, "list_operators", lambda *given, **more: OPERATORS)
    assert called("extract", "train.py", "--step", "train_step") == 0
    out = capsys.readouterr().out
    assert "train.py on cpu: 400 us per step" in out
    assert "25.0%" in out
    assert "1.33x" in out
    assert "(it returns a view)" in out
    assert called("extract", "train.py", "--step", "train_step", "--json") == 0
    assert StepOperators.model_validate_json(capsys.readouterr().out) == OPERATORS


def test_what_was_written_is_said_with_its_calls(called, capsys, monkeypatch, tmp_path):
    asked = {}

    def made(here, chosen, **more):
        asked.update(more, args=chosen.args)
        path = here.kernels / "softmax" / "definition.py"
        return extract.ExtractedOperator(path, EXTRACTION, ROW, ("2 other ways.",))

    monkeypatch.setattr(extract, "extract_operator", made)
    assert called("extract", "train.py", "--step", "train_step", "--op", "aten::_softmax", "--", "--n", "8") == 0
    out, err = capsys.readouterr()
    assert "aten::_softmax: 2 calls per step, 25.0% of its time, at most 1.33x" in out
    assert "8x8: 2 calls" in out
    assert "2 other ways." in out
    assert "Definition: kernels/softmax/definition.py" in out
    assert "warpsmith start softmax" in err
    assert (asked["operator"], asked["args"]) == ("aten::_softmax", ("--n", "8"))
    more = ("--kernel", "softmax", "--like", "8x8", "--json")
    assert called("extract", "train.py", "--step", "train_step", *more) == 0
    assert (asked["kernel"], asked["like"]) == ("softmax", "8x8")
    assert json.loads(capsys.readouterr().out)["operator"] == "aten::_softmax"


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("--op", "a", "--kernel", "b"), "not several", 2),
        (("--name", "mine"), "--name and --like apply to one operator", 2),
        (("--like", "8x8"), "--name and --like apply to one operator", 2),
    ],
)
def test_options_that_do_not_go_together(called, capsys, arguments, said, code):
    assert called("extract", "train.py", "--step", "train_step", *arguments) == code
    assert said in capsys.readouterr().err


def integrated(verdict: TrialVerdict, here, *, same: float = 1e-5) -> integrate.Integration:
    gain = {"seconds": 1e-5, "error": 1e-6}
    audit = Transfer(
        op="softmax", operator="aten::_softmax", solution="cpp/v1", device="cpu", step_seconds=4e-4,
        workloads=(WorkloadTransfer.model_validate(
            {"workload": "8x8", "calls": 2, "reference_seconds": 5e-5, "seconds": 4e-5, "fresh": gain,
             "weights": gain, "same": {"seconds": same, "error": 1e-6}}),),
        measured=Comparison(against="original", other_seconds=4e-4, speedup=1.05,
                            interval=Interval(low=1.04, high=1.06), pairs=9),
    )  # fmt: skip
    decision = TrialDecision(verdict=verdict, reason="because")
    closed = SimpleNamespace(record=SimpleNamespace(decision=decision), folder=Path.cwd() / "devlog" / "001")
    return integrate.Integration(closed, audit)  # type: ignore[arg-type]


def test_an_integration_says_its_shares_and_both_gains(called, capsys, monkeypatch):
    monkeypatch.setattr(
        integrate, "integrate_kernel", lambda here, op, chosen, **more: integrated(TrialVerdict.KEPT, here)
    )
    assert called("integrate", "softmax", "train.py", "--step", "train_step") == 0
    out = capsys.readouterr().out
    assert "KEPT: because" in out
    assert "real share:         20.0 us (error 2.00 us) per step" in out
    assert "residual share:     0 s (error" in out
    assert "DOES NOT TRANSFER" not in out
    assert "predicted: 20.0 us per step, 1.053x" in out
    assert "measured:  19.0 us per step, 1.050x [1.040, 1.060]" in out
    assert "Record: devlog/001" in out


def test_a_line_that_is_taken_back_is_exit_code_1_and_a_residual_is_loud(called, capsys, monkeypatch):
    monkeypatch.setattr(
        integrate,
        "integrate_kernel",
        lambda here, *given, **more: integrated(TrialVerdict.RESTORED, here, same=4e-5),
    )
    assert called("integrate", "softmax", "train.py", "--step", "train_step", "--json") == 1
    assert Transfer.model_validate_json(capsys.readouterr().out).inflated
    assert called("integrate", "softmax", "train.py", "--step", "train_step") == 1
    assert "DOES NOT TRANSFER" in capsys.readouterr().out


def test_what_was_never_extracted_is_exit_code_3(called, capsys):
    assert called("integrate", "softmax", "train.py", "--step", "train_step") == MissingInput.exit_code
    assert "softmax was not extracted from a program" in capsys.readouterr().err
