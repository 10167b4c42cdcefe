"""`warpsmith answer` and `warpsmith brief` as a user calls them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from warpsmith import files
from warpsmith.campaign import start
from warpsmith.campaign.history import store
from warpsmith.cli import main as entry
from warpsmith.core.profile import Profile
from warpsmith.driver.answers import message
from warpsmith.driver.answers.models import EXAMPLES
from warpsmith.interchange import template
from warpsmith.project import Project

OP = "row_softmax"
SUBJECT = {"op": OP, "version": "cpp/v1", "target": "cpu"}


def block(kind: str, **fields: object) -> str:
    return f"Done.\n```json\n{json.dumps(EXAMPLES[kind] | fields)}\n```\n"


VERSION, PROFILE = block("version"), block("profile", **SUBJECT)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv(store.ENVIRONMENT, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warpsmith.toml").write_text("")
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")


@pytest.fixture
def campaign(project: Project) -> store.Campaign:
    files.write_file(project.definition_path(OP), template.draft_example(OP).files["definition.py"])
    return start.start_campaign(project, OP, "cpu", "cpp")


def keep(campaign: store.Campaign, dram_pct: float) -> None:
    """The open round's profile as `warpsmith profile` leaves it."""
    profile = {
        "version": "v1", "language": "cpp", "solution_sha256": "a" * 64, "evidence": "timings", "stages": [],
        "bottleneck": "memory", "root_cause": "It waits.", "opportunities": [], "measured": "2026-11-21 10:00",
        "metrics": [{"name": "dram_pct", "value": dram_pct}],
    }  # fmt: skip
    campaign.write_part("profile_after", Profile.model_validate(profile))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str | bytes = "") -> int:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_show_prints_passes_check(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run(monkeypatch, "answer", "show", kind) == 0
    shown = capsys.readouterr().out
    assert json.dumps(EXAMPLES[kind], indent=2) in shown
    assert run(monkeypatch, "answer", "check", kind, stdin=shown) == 0
    assert capsys.readouterr().out == f"The answer is a valid `{kind}`.\n"


def test_a_file_and_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "answer.md").write_text(VERSION)
    assert run(monkeypatch, "answer", "check", "version", "answer.md", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["version"] == "triton/v4"
    assert told.err == ""


def test_what_does_not_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    text = block("version", correctness="GOOD", notes="x")
    assert run(monkeypatch, "answer", "check", "version", stdin=text) == 2
    told = capsys.readouterr()
    assert told.out == ""
    *faults, last = told.err.splitlines()
    assert faults == message.list_faults("version", text)
    assert "2 faults" in last
    assert "`warpsmith answer show version`" in last


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (("check", "version", "gone.md"), "", 3, "gone.md does not exist"),
        (("check", "version"), b"\xff", 2, "stdin cannot be read"),
        (("check", "plan"), "", 2, "`plan`; known: profile, version, review."),
        (("show", "plan"), "", 2, "Unknown kind of answer `plan`"),
    ],
)
def test_misuse(
    arguments: tuple[str, ...],
    stdin: str | bytes,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    assert run(monkeypatch, "answer", *arguments, stdin=stdin) == code
    assert said in capsys.readouterr().err


def test_without_a_campaign_numbers_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run(monkeypatch, "answer", "check", "profile", stdin=PROFILE) == 0
    assert capsys.readouterr().err.startswith("Values not compared: ")
    assert run(monkeypatch, "answer", "check", "profile", "--campaign", "gone", stdin=PROFILE) == 2
    assert "`gone` is no campaign" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("version", {"changes": ["It is 9.7x faster."]}, "The `changes` states `9.7x`"),
        ("review", {"reason": "It gains 9.7x in use."}, "The `reason` states `9.7x`"),
        ("review", {"transfer": ["Long rows gain 31 %."]}, "The `transfer` states `31 %`"),
        ("profile", {"root_cause": "It waits 31 % of the time."}, "The `root_cause` states `31 %`"),
    ],
)
def test_an_invented_figure_in_a_text(
    kind: str,
    fields: dict[str, object],
    said: str,
    campaign: store.Campaign,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    op, target = campaign.manifest.target_op, campaign.manifest.target
    subject = {"op": op} | ({"target": target} if kind == "profile" else {})
    assert run(monkeypatch, "answer", "check", kind, stdin=block(kind, **subject | fields)) == 2
    assert said in capsys.readouterr().err


def test_a_number_that_is_not_the_kept_one(
    campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    check = ("answer", "check", "profile")
    assert run(monkeypatch, *check, stdin=PROFILE) == 0
    assert f"the open round of {campaign.name} has no profile of cpp/v1." in capsys.readouterr().err
    keep(campaign, 61.3)
    assert run(monkeypatch, *check, stdin=PROFILE) == 0
    assert capsys.readouterr().err == ""
    other = block("profile", **SUBJECT | {"target": "h200"})
    assert run(monkeypatch, *check, stdin=other) == 0
    assert f"{campaign.name} optimizes {OP} on cpu." in capsys.readouterr().err
    keep(campaign, 40.0)
    assert run(monkeypatch, *check, stdin=PROFILE) == 2
    told = capsys.readouterr().err
    assert "`opportunities.0`: dram_pct is 61, but 40 in the kept profile" in told
    assert "2 faults" in told


def test_the_brief(campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "brief") == 0
    assert capsys.readouterr().out.startswith(f"## Task: {OP} none -> cpp/v1\n")
    assert run(monkeypatch, "brief", "--json", "--campaign", campaign.name) == 0
    assert json.loads(capsys.readouterr().out)["due"] == "cpp/v1"


def test_a_brief_without_a_campaign(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "brief") == 2
    assert "There is no campaign in " in capsys.readouterr().err
