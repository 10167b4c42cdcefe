"""`warpsmith contract` and `warpsmith brief` as a user calls them."""

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
from warpsmith.driver.contracts import registry as contracts
from warpsmith.interchange import template
from warpsmith.project import Project

OP, VERSION = "row_softmax", contracts.FORMS["version"].example
PROFILE = contracts.FORMS["profile"].example.replace("softmax triton/v3 on h200", f"{OP} cpp/v1 on cpu")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv(store.ENVIRONMENT, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warpsmith.toml").write_text("")
    return Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs" / "knowledge")


@pytest.fixture
def campaign(project: Project) -> store.Campaign:
    files.write(project.definition(OP), template.draft(OP).files["definition.py"])
    return start.start(project, OP, "cpu", "cpp")


def keep(campaign: store.Campaign, dram_pct: float) -> None:
    """The open round's profile as `warpsmith profile` leaves it."""
    profile = {
        "version": "v1", "language": "cpp", "solution_sha256": "a" * 64, "evidence": "timings", "stages": [],
        "bottleneck": "memory", "root_cause": "It waits.", "opportunities": [], "measured": "2026-11-21 10:00",
        "metrics": [{"name": "dram_pct", "value": dram_pct}],
    }  # fmt: skip
    campaign.write_step("profile_after", Profile.model_validate(profile))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str | bytes = "") -> int:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    monkeypatch.setattr(sys, "argv", ["warpsmith", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("kind", contracts.FORMS)
def test_what_show_prints_passes_check(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run(monkeypatch, "contract", "show", kind) == 0
    shown = capsys.readouterr().out
    assert contracts.FORMS[kind].example in shown
    assert run(monkeypatch, "contract", "check", kind, stdin=shown) == 0
    assert capsys.readouterr().out == f"The {kind} fits its contract.\n"


def test_a_file_and_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "answer.md").write_text(f"Done.\n{VERSION}")
    assert run(monkeypatch, "contract", "check", "version", "answer.md", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["version"] == "triton/v4"
    assert told.err == ""


def test_what_does_not_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    text = VERSION.replace("PASS", "GOOD").replace("### Files", "### Filez")
    assert run(monkeypatch, "contract", "check", "version", stdin=text) == 2
    told = capsys.readouterr()
    assert told.out == ""
    *problems, last = told.err.splitlines()
    assert problems == contracts.problems("version", text)
    assert last == (
        "warpsmith: The version does not fit its contract: 3 problems; mend what is named,"
        " `warpsmith contract show version` prints the form."
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (("check", "version", "gone.md"), "", 3, "gone.md does not exist"),
        (("check", "version"), b"\xff", 2, "stdin does not read"),
        (("check", "plan"), "", 2, "Unknown contract `plan`; known: profile, task, version, review."),
        (("show", "plan"), "", 2, "Unknown contract `plan`"),
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
    assert run(monkeypatch, "contract", *arguments, stdin=stdin) == code
    assert said in capsys.readouterr().err


def test_without_a_campaign_numbers_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert run(monkeypatch, "contract", "check", "profile", stdin=PROFILE) == 0
    assert capsys.readouterr().err.startswith("Numbers not compared: ")
    assert run(monkeypatch, "contract", "check", "profile", "--campaign", "gone", stdin=PROFILE) == 2
    assert "No campaign `gone`" in capsys.readouterr().err


def test_a_number_that_is_not_the_kept_one(
    campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    check = ("contract", "check", "profile")
    assert run(monkeypatch, *check, stdin=PROFILE) == 0
    assert f"the open round of {campaign.name} keeps no profile of cpp/v1." in capsys.readouterr().err
    keep(campaign, 61.3)
    assert run(monkeypatch, *check, stdin=PROFILE) == 0
    assert capsys.readouterr().err == ""
    other = PROFILE.replace(f"{OP} cpp/v1 on cpu", f"{OP} cpp/v1 on h200")
    assert run(monkeypatch, *check, stdin=other) == 0
    assert f"{campaign.name} is about {OP} on cpu." in capsys.readouterr().err
    keep(campaign, 40.0)
    assert run(monkeypatch, *check, stdin=PROFILE) == 2
    told = capsys.readouterr().err
    assert "Opportunities: dram_pct=61, but it is 40 in the kept profile. Fix: write that.\n" in told
    assert "2 problems" in told


def test_the_brief(campaign: store.Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "brief") == 0
    text = capsys.readouterr().out
    assert contracts.problems("task", text) == []
    assert run(monkeypatch, "brief", "--json", "--campaign", campaign.name) == 0
    assert json.loads(capsys.readouterr().out)["due"] == "cpp/v1"


def test_a_brief_without_a_campaign(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, "brief") == 2
    assert "There is no campaign in " in capsys.readouterr().err
