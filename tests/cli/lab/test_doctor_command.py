"""`warpsmith doctor`: the answer, the exit code, and that nothing heavy is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.cli.lab import doctor as command
from warpsmith.errors import MachineLacks
from warpsmith.lab.doctor import checks
from warpsmith.lab.doctor.models import DoctorGroup, DoctorReport, DoctorRow, Readiness

HEAVY = ("torch", "triton", "numpy", "scipy", "matplotlib")
PROBE = f"""
import sys
from warpsmith.cli.main import main
sys.argv = ["warpsmith", "doctor", *sys.argv[1:]]
try:
    main()
finally:
    sys.stderr.write(str(sorted(set(sys.modules) & set({HEAVY}))))
"""
OK = DoctorRow(name="git", state="ok", found="2.39")
GAP = DoctorRow(
    name="device", state="gap", found="none", means="GPU targets cannot be judged here", stops=("gpu",)
)
CLOCKS = DoctorRow(name="clocks", state="missing", found="too hot", fix="Let it cool.")
COMPILER = DoctorRow(name="cpp", state="missing", found="no compiler", fix="Install `g++`.", stops=("cpu",))


def probe(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-W", "error", "-c", PROBE, *arguments]
    return subprocess.run(line, cwd=at, capture_output=True, text=True, timeout=60, check=False)


def run(monkeypatch: pytest.MonkeyPatch, rows: tuple[DoctorRow, ...], *arguments: str) -> int:
    found = DoctorReport.of([DoctorGroup(name="all", rows=rows)])
    monkeypatch.setattr(checks, "examine_machine", lambda: found)
    monkeypatch.setattr(sys, "argv", ["warpsmith", "doctor", *arguments])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("rows", "code", "last"),
    [
        ((OK, GAP), 0, "Ready: versions can be judged on cpu."),
        ((OK, CLOCKS), 0, "Ready with gaps: versions can be judged on cpu and gpu, without: clocks."),
        ((OK, GAP, COMPILER), MachineLacks.exit_code, "Not ready. First: Install `g++`."),
    ],
)
def test_the_answer_and_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows: tuple[DoctorRow, ...],
    code: int,
    last: str,
):
    assert run(monkeypatch, rows) == code
    told = capsys.readouterr()
    assert (told.out.splitlines()[-1], told.err) == (last, "")
    assert run(monkeypatch, rows, "--json") == code
    assert DoctorReport.model_validate_json(capsys.readouterr().out).groups[0].rows == rows


def test_what_is_there_is_one_line_and_a_fix_is_told_once():
    again = CLOCKS.model_copy(update={"name": "power"})
    group = DoctorGroup(name="all", rows=(OK, CLOCKS, OK, again, GAP))
    assert list(command._lines(group, set())) == [
        ("ok", "git: 2.39; git: 2.39"),
        ("missing", "clocks: too hot"),
        ("", "Fix: Let it cool."),
        ("missing", "power: too hot"),
        ("gap", "device: none; GPU targets cannot be judged here"),
    ]


def test_on_this_machine(tmp_path: Path):
    (tmp_path / "warpsmith.toml").write_text("")
    done = probe("--json", at=tmp_path)
    found = json.loads(done.stdout)
    assert done.stderr == "[]"
    assert done.returncode == (MachineLacks.exit_code if found["answer"] == Readiness.NOT_READY else 0)
    assert [group["name"] for group in found["groups"]] == list(checks.CHECKS)
    assert [path.name for path in tmp_path.iterdir()] == ["warpsmith.toml"]
    text = probe(at=tmp_path).stdout.splitlines()
    assert text[-1].startswith(found["answer"])
    assert len(text) <= 40
