"""`warpsmith redteam`: what is printed, kept and answered; the judging itself is played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.core.hardware import Machine
from warpsmith.core.trust import Check
from warpsmith.lab.gate_tests import redteam
from warpsmith.lab.gate_tests.cases import RedTeamCase
from warpsmith.lab.gate_tests.models import CaseOutcome, RedTeamReport, RedTeamResult
from warpsmith.lab.machine import identity

HEADERS = {
    "attack_cache.cpp": "// class: pointer cache\n// kind: attack\n// how: keeps [bold]it\n// caught: probes\n",
    "control_plain.cpp": "// class: plain\n// kind: control\n// how: loops\n",
}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`command(outcomes, *arguments)`: run it over two candidates with these outcomes; its exit code."""
    (tmp_path / "warpsmith.toml").write_text("")
    (tmp_path / "own" / "square" / "cpp").mkdir(parents=True)
    (tmp_path / "own" / "square" / "definition.py").write_text("")
    for name, text in HEADERS.items():
        (tmp_path / "own" / "square" / "cpp" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return run


def run(outcomes: list[CaseOutcome | type[BaseException] | signal.Signals], *arguments: str) -> int:
    """The command, where judging comes to `outcomes`; its exit code."""

    def played(team: redteam.RedTeam, cases: list[RedTeamCase], jobs: int) -> Iterator[RedTeamResult]:
        assert jobs > 0
        team._missing["memcheck"] = Check(name="memcheck", ran=False, how="no GPU")
        for case, outcome in zip(cases, outcomes, strict=True):
            if isinstance(outcome, signal.Signals):
                os.kill(os.getpid(), outcome)
            if not isinstance(outcome, CaseOutcome):
                raise outcome
            yield result(team, case, outcome)

    here = Machine(id="cpu-0", target="cpu", device="a", processor="a", libraries={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "identify_machine", lambda _: here)
        patch.setattr(redteam.RedTeam, "run", played)
        patch.setattr(sys, "argv", ["warpsmith", "redteam", "--target", "cpu", "--folder", "own", *arguments])
        try:
            entry.main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def killed(*arguments: str) -> str:
    """The command in a process of its own, killed at the second candidate; what it told people."""
    script = "from test_cli_redteam import *; run([CaseOutcome.CAUGHT, signal.SIGKILL], *sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == ""
    return done.stderr


def result(team: redteam.RedTeam, case: RedTeamCase, outcome: CaseOutcome) -> RedTeamResult:
    refused = {"step": "correctness", "status": "CACHED_RESULT", "verdict": "ROLLBACK", "message": "kept"}
    accepted = {"status": "PASSED", "verdict": "ACCEPT"}
    return RedTeamResult.model_validate(
        {
            **team._identity(case), "outcome": outcome, "target": "cpu", "seconds": 0.9,
            **(refused if outcome in (CaseOutcome.CAUGHT, CaseOutcome.REFUSED) else accepted),
        }
    )  # fmt: skip


RIGHT = [CaseOutcome.CAUGHT, CaseOutcome.ACCEPTED]


def test_all_is_as_expected(command, capsys, tmp_path: Path):
    assert command(RIGHT) == 0
    told = capsys.readouterr()
    lines = [line.split() for line in told.out.splitlines()]
    assert lines[0] == ["definition", "candidate", "class", "expected", "caught", "at", "status", "time"]
    assert lines[1][-4:] == ["probes)", "CACHED_RESULT", "900", "ms"]
    assert lines[2] == ["square", "cpp/control_plain.cpp", "plain", "accepted", "-", "ACCEPT", "900", "ms"]
    text = told.out.splitlines()[3:]
    assert text[:2] == ["1 attack: 1 caught, 0 got through", "1 honest control: 1 accepted, 0 refused"]
    assert text[2] == "refused at another step than expected: 1 attack"
    assert text[3] == "not in force on this machine: memcheck (no GPU)"
    (kept,) = (tmp_path / ".warpsmith" / "redteam").iterdir()
    assert text[4] == f"record: .warpsmith/redteam/{kept.name}"
    assert kept.name.startswith("redteam-cpu-0-20")
    report = RedTeamReport.model_validate_json(kept.read_text())
    assert (len(report.results), report.finished) == (2, True)
    assert told.err.splitlines() == [
        "1 of 2: square/cpp/attack_cache.cpp: caught, 0.9 s",
        "2 of 2: square/cpp/control_plain.cpp: accepted, 0.9 s",
    ]


@pytest.mark.parametrize(
    ("outcomes", "arguments", "code", "said"),
    [
        (
            [CaseOutcome.GOT_THROUGH, CaseOutcome.ACCEPTED],
            (),
            1,
            "it was wrong about square/cpp/attack_cache.cpp",
        ),
        ([CaseOutcome.CAUGHT, CaseOutcome.REFUSED], (), 1, "it was wrong about square/cpp/control_plain.cpp"),
        (
            [CaseOutcome.CAUGHT, CaseOutcome.MACHINE_FAILED],
            (),
            4,
            "machine failed at square/cpp/control_plain.cpp",
        ),
        ([CaseOutcome.GOT_THROUGH, CaseOutcome.MACHINE_FAILED], (), 1, "attack_cache.cpp"),
        (RIGHT, ("--strict",), 1, "another check than the header names: square/cpp/attack_cache.cpp"),
        ([CaseOutcome.NOT_RUN, CaseOutcome.CORRECT], ("--strict",), 0, ""),
    ],
)
def test_the_exit_code(command, capsys, outcomes, arguments, code: int, said: str):
    assert command(outcomes, *arguments) == code
    told = capsys.readouterr().err
    assert said in told
    assert told.splitlines()[-1].startswith("warpsmith: ") == bool(code)


def test_interrupted_it_shows_what_was_run_and_goes_on(command, capsys, tmp_path: Path):
    assert command([KeyboardInterrupt, CaseOutcome.ACCEPTED]) == 130
    assert not (tmp_path / ".warpsmith").exists()
    assert command([CaseOutcome.CAUGHT, KeyboardInterrupt]) == 130
    told = capsys.readouterr().out
    assert "1 attack: 1 caught" in told
    (kept,) = (tmp_path / ".warpsmith" / "redteam").iterdir()
    assert told.endswith(f"record: .warpsmith/redteam/{kept.name}\n")
    assert not RedTeamReport.model_validate_json(kept.read_text()).finished
    assert command([CaseOutcome.ACCEPTED]) == 0
    assert "continuing after 1 of 2 candidates." in capsys.readouterr().err
    (kept,) = (tmp_path / ".warpsmith" / "redteam").iterdir()
    assert RedTeamReport.model_validate_json(kept.read_text()).finished
    assert command(RIGHT) == 0
    assert "continuing" not in capsys.readouterr().err


def test_killed_it_leaves_what_was_run_and_goes_on(command, capsys, tmp_path: Path):
    out = tmp_path / "out.json"
    told = killed("--out", "out.json")
    assert told == "1 of 2: square/cpp/attack_cache.cpp: caught, 0.9 s\n"
    assert not out.exists()
    left = RedTeamReport.model_validate_json((tmp_path / "out.unfinished.json").read_text())
    assert ([one.outcome for one in left.results], left.finished) == ([CaseOutcome.CAUGHT], False)
    assert command([CaseOutcome.ACCEPTED], "--out", "out.json") == 0
    assert capsys.readouterr().err.splitlines() == [
        "out.unfinished.json: continuing after 1 of 2 candidates.",
        "2 of 2: square/cpp/control_plain.cpp: accepted, 0.9 s",
    ]
    whole = RedTeamReport.model_validate_json(out.read_text())
    assert whole.results[0] == left.results[0]
    assert (len(whole.results), whole.finished) == (2, True)
    assert [check.name for check in whole.not_in_force] == ["memcheck"]


def test_a_candidate_that_changed_begins_it_anew(command, capsys, tmp_path: Path):
    assert command([CaseOutcome.CAUGHT, KeyboardInterrupt], "--out", "out.json") == 130
    with (tmp_path / "own" / "square" / "cpp" / "attack_cache.cpp").open("a") as file:
        file.write("int x;\n")
    assert command(RIGHT, "--out", "out.json") == 0
    messages = capsys.readouterr().err.splitlines()
    (change,) = [line for line in messages if line.startswith("out.unfinished.json: square/cpp/attack_cache.cpp")]
    assert change.endswith("has changed; starting again.")


def test_json_is_the_record(command, capsys, tmp_path: Path):
    assert command(RIGHT, "--json", "--out", str(tmp_path / "out.json")) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out.json").read_text())


def test_the_list_runs_nothing(command, capsys):
    assert command([RuntimeError], "--list") == 0
    assert "| pointer cache | probes | square cpp | keeps \\[bold\\]it |" in capsys.readouterr().out


def test_a_pattern_that_nothing_matches(command, capsys):
    assert command(RIGHT, "argmax") == 3
    assert "matches `argmax`" in capsys.readouterr().err
