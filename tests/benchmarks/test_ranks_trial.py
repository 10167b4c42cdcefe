"""The benchmark that tries a program of several ranks: its edit fits the example, and it keeps what it has."""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def benchmark(load_benchmark) -> ModuleType:
    return load_benchmark("ranks_trial")


def test_the_edit_fits_the_example(benchmark: ModuleType):
    edited = benchmark.edit_text(benchmark.EXAMPLE.read_text())
    calls = [node.attr for node in ast.walk(ast.parse(edited)) if isinstance(node, ast.Attribute)]
    assert calls.count("no_sync") == 1
    with pytest.raises(SystemExit, match="mend EDITS"):
        benchmark.edit_text(edited)


@pytest.mark.parametrize(
    ("failing", "words"), [(1, ["analyze", "apply"]), (9, ["analyze", "apply", "verify", "report"])]
)
def test_a_trial_ends_at_the_first_failure_and_keeps_its_records(benchmark, tmp_path, monkeypatch, failing, words):
    calls: list[str] = []

    def run_command(root: Path, step: tuple[str, ...], seconds: float) -> int:
        assert seconds > 0
        assert ("no_sync" in (root / "train.py").read_text()) == (step[0] in ("verify", "report"))
        calls.append(step[0])
        (root / "devlog").mkdir(exist_ok=True)
        (root / "devlog" / step[0]).touch()
        return 7 if len(calls) > failing else 0

    monkeypatch.setattr(benchmark, "run_command", run_command)
    monkeypatch.setattr(sys, "argv", ["ranks_trial.py", "--device", "cpu", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as end:
        benchmark.main()
    assert (end.value.code, calls) == (7 if failing == 1 else 0, words)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(words)


def test_a_command_beyond_its_time_is_ended(benchmark, tmp_path):
    begin = time.monotonic()
    code = benchmark.run_command(tmp_path, ("analyze", "--command", "sleep 60", "--timeout", "60"), 0.0)
    assert code == 124
    assert time.monotonic() - begin < 30
