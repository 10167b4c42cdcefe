"""`warpsmith aa`: what is kept while it is at work, and that it goes on; the judging itself is played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpsmith.cli import main as entry
from warpsmith.core.hardware import Machine
from warpsmith.lab.calibration import measurement
from warpsmith.lab.gate_tests import identical_judgements
from warpsmith.lab.machine import identity

HERE = Machine(id="cpu-0", target="cpu", device="a", processor="a", libraries={})
ALIKE = SimpleNamespace(
    device="cpu",
    workloads=(SimpleNamespace(name="64x64"),),
    file=SimpleNamespace(definition=SimpleNamespace(description="y = x")),
)


def run(outcomes: str, *arguments: str) -> int:
    """The command, where a judgement comes to no difference (`.`), an acceptance (`+`) or its end (`!`)."""
    script = iter(outcomes)

    def played(*_: object) -> tuple[str, float]:
        outcome = next(script)
        if outcome == "!":
            os.kill(os.getpid(), signal.SIGKILL)
        return ("accepted", 0.03) if outcome == "+" else ("none", 0.001)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "identify_machine", lambda _: HERE)
        patch.setattr(measurement, "ensure_measurement", lambda *_: SimpleNamespace(machine=HERE, noise=None))
        patch.setattr(identical_judgements, "IdenticalSides", lambda *_: nullcontext(ALIKE))
        patch.setattr(identical_judgements, "_judge", played)
        patch.setattr(sys, "argv", ["warpsmith", "aa", "--target", "cpu", *arguments])
        try:
            entry.main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(name: str = "aa.json") -> tuple[int, int, bool]:
    record = json.loads(Path(name).read_text())
    return record["runs"], record["accepted"], record["finished"]


def test_killed_it_leaves_what_was_judged_and_goes_on(capsys):
    script = "from test_aa_command import *; run('.' * 10 + '+!', *sys.argv[1:])"
    arguments = ("--runs", "60", "--out", "aa.json")
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert done.stderr == "A/A judgement 10 of 60: 0 accepted so far\n"
    assert kept("aa.unfinished.json") == (11, 1, False)
    assert not Path("aa.json").exists()
    assert run("." * 49, *arguments) == 0
    told = capsys.readouterr()
    assert told.err.startswith(
        "aa.unfinished.json: continuing after 11 of 60 judgements.\nA/A judgement 20 of 60: 1 accepted"
    )
    assert told.out.startswith("false wins: 1 of 60 A/A judgements")
    assert kept() == (60, 1, True)
    assert not Path("aa.unfinished.json").exists()


def test_a_finished_record_stays_until_another_is(capsys):
    assert run("...", "--runs", "3", "--out", "aa.json") == 0
    with pytest.raises(RuntimeError):
        run("..", "--runs", "4", "--out", "aa.json")
    assert kept() == (3, 0, True)
    Path("aa.unfinished.json").unlink()
    assert run("....", "--runs", "4", "--out", "aa.json") == 0
    assert capsys.readouterr().err == ""
    assert kept() == (4, 0, True)


def test_more_false_wins_than_stated(capsys):
    assert run("..+", "--runs", "3") == 1
    assert "false wins: 1 of 3" in capsys.readouterr().out


def test_more_devices_than_there_are(capsys):
    assert run("", "--parallel", "2", "--out", "aa.json") == 2
    assert "has 1, since a judgement times all cores" in capsys.readouterr().err
    assert list(Path.cwd().iterdir()) == [Path.cwd() / "warpsmith.toml"]
