"""`warpsmith redteam`: what is printed, kept and answered; the judging itself is played."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.core.hardware import Machine
from warpsmith.core.redteam import Outcome, RedTeamReport, Result
from warpsmith.core.trust import Check
from warpsmith.lab import machine, redteam
from warpsmith.lab.redteam_cases import Case

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
    here = Machine(id="cpu-0", target="cpu", device="a", processor="a", libraries={})
    monkeypatch.setattr(machine, "machine", lambda _: here)

    def run(outcomes: list[Outcome | type[BaseException]], *arguments: str) -> int:
        def played(team: redteam.RedTeam, cases: tuple[Case, ...], jobs: int) -> Iterator[Result]:
            assert jobs > 0
            team._missing["memcheck"] = Check(name="memcheck", ran=False, how="no GPU")
            for case, outcome in zip(cases, outcomes, strict=True):
                if not isinstance(outcome, Outcome):
                    raise outcome
                yield result(case, outcome)

        monkeypatch.setattr(redteam.RedTeam, "run", played)
        monkeypatch.setattr(
            sys, "argv", ["warpsmith", "redteam", "--target", "cpu", "--folder", "own", *arguments]
        )
        try:
            entry.main()
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    return run


def result(case: Case, outcome: Outcome) -> Result:
    refused = {"step": "correctness", "status": "CACHED_RESULT", "verdict": "ROLLBACK", "message": "kept"}
    accepted = {"status": "PASSED", "verdict": "ACCEPT"}
    return Result.model_validate(
        {
            "definition": case.definition, "file": case.name, "header": case.header, "sha256": "0" * 64,
            "definition_sha256": "0" * 64, "outcome": outcome, "target": "cpu", "seconds": 0.9,
            **(refused if outcome in (Outcome.CAUGHT, Outcome.REFUSED) else accepted),
        }
    )  # fmt: skip


RIGHT = [Outcome.CAUGHT, Outcome.ACCEPTED]


def test_all_is_as_expected(command, capsys, tmp_path: Path):
    assert command(RIGHT) == 0
    told = capsys.readouterr()
    lines = [line.split() for line in told.out.splitlines()]
    assert lines[0] == ["definition", "candidate", "class", "expected", "caught", "at", "status", "time"]
    assert lines[1][-4:] == ["probes)", "CACHED_RESULT", "900", "ms"]
    assert lines[2] == ["square", "cpp/control_plain.cpp", "plain", "accepted", "-", "ACCEPT", "900", "ms"]
    text = told.out.splitlines()[3:]
    assert text[:2] == ["1 attack: 1 caught, 0 got through", "1 honest control: 1 accepted, 0 refused"]
    assert text[2] == "caught otherwise than expected: 1 attack"
    assert text[3] == "not in force on this machine: memcheck (no GPU)"
    (kept,) = (tmp_path / ".warpsmith" / "redteam").iterdir()
    assert text[4] == f"record: .warpsmith/redteam/{kept.name}"
    assert kept.name.startswith("redteam-cpu-0-20")
    assert len(RedTeamReport.model_validate_json(kept.read_text()).results) == 2


@pytest.mark.parametrize(
    ("outcomes", "arguments", "code", "said"),
    [
        (
            [Outcome.GOT_THROUGH, Outcome.ACCEPTED],
            (),
            1,
            "it was wrong about square/cpp/attack_cache.cpp",
        ),
        ([Outcome.CAUGHT, Outcome.REFUSED], (), 1, "it was wrong about square/cpp/control_plain.cpp"),
        ([Outcome.CAUGHT, Outcome.MACHINE_FAILED], (), 4, "machine failed at square/cpp/control_plain.cpp"),
        ([Outcome.GOT_THROUGH, Outcome.MACHINE_FAILED], (), 1, "attack_cache.cpp"),
        (RIGHT, ("--strict",), 1, "otherwise than the header says: square/cpp/attack_cache.cpp"),
        ([Outcome.NOT_RUN, Outcome.CORRECT], ("--strict",), 0, ""),
    ],
)
def test_the_exit_code(command, capsys, outcomes, arguments, code: int, said: str):
    assert command(outcomes, *arguments) == code
    told = capsys.readouterr().err
    assert said in told
    assert told.startswith("warpsmith: ") == bool(code)


def test_interrupted_it_shows_what_was_run_and_keeps_nothing(command, capsys, tmp_path: Path):
    assert command([Outcome.CAUGHT, KeyboardInterrupt]) == 130
    assert "1 attack: 1 caught" in capsys.readouterr().out
    assert not (tmp_path / ".warpsmith").exists()


def test_json_is_the_record(command, capsys, tmp_path: Path):
    assert command(RIGHT, "--json", "--out", str(tmp_path / "out.json")) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "out.json").read_text())


def test_the_list_runs_nothing(command, capsys):
    assert command([RuntimeError], "--list") == 0
    assert "| pointer cache | probes | square cpp | keeps \\[bold\\]it |" in capsys.readouterr().out


def test_a_pattern_that_nothing_matches(command, capsys):
    assert command(RIGHT, "argmax") == 3
    assert "matches `argmax`" in capsys.readouterr().err
