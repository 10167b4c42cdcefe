"""`warpsmith optimize`: which campaign it takes, what it refuses, and how it ends."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from warpsmith.campaign import lab_requests, start
from warpsmith.cli.campaign import designers
from warpsmith.cli.campaign import optimize as command
from warpsmith.cli.main import load_app
from warpsmith.driver.claude import designer as claude
from warpsmith.driver.claude import process as claude_process
from warpsmith.driver.optimize import list_unfinished, run_loop
from warpsmith.errors import AgentStopped, Misuse


def run(*arguments: str) -> Result:
    return CliRunner().invoke(load_app(), ["optimize", *arguments])


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, Misuse), result.output
    return str(result.exception)


@pytest.fixture(autouse=True)
def here(project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (project.root / "warpsmith.toml").write_text("")
    monkeypatch.chdir(project.root)
    return project


@pytest.fixture
def seated(designer: Any, lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scripted designer in Claude's seat."""
    monkeypatch.setattr(claude_process, "require_claude", lambda: None)
    monkeypatch.setattr(claude, "ClaudeDesigner", lambda *_: designer)
    monkeypatch.setattr(lab_requests, "run_final_race", lambda *_: None)
    return designer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--designer", "nobody"], "Unknown designer `nobody`; known: recorded, drafts, claude."),
        ([], "give --designer claude, --drafts FOLDER or --recording FOLDER"),
        (["--designer", "recorded"], "needs --recording, the folder of a campaign; or use --designer claude"),
        (
            ["--designer", "recorded", "--max-budget-usd", "1", "--model", "m"],
            "asks no model; omit --model and --max-budget-usd",
        ),
        (["--designer", "claude", "--recording", "r"], "replays nothing; omit --recording"),
        (["--designer", "claude", "--drafts", "d"], "replays nothing; omit --drafts"),
        (["--designer", "recorded", "--drafts", "d"], "plays no drafts; omit --drafts"),
        (["--designer", "drafts"], "needs --drafts, a folder of versions named after their language"),
        (
            ["--designer", "drafts", "--drafts", "d", "--recording", "r"],
            "plays no recording; omit --recording",
        ),
        (["--designer", "drafts", "--drafts", "d", "--model", "m"], "asks no model; omit --model"),
        (["--designer", "claude", "--resume"], "No campaign of scale is unfinished; start one without"),
        (["--designer", "claude", "--resume", "--context", "lab"], "manifest sets these; omit --context"),
        (["--designer", "claude", "--context", "lab"], "--context needs --target"),
        (["--designer", "recorded", "--recording", "r", "--parallel", "2"], "one round after the other; omit"),
        (["--designer", "claude", "--context", "no", "--target", "cpu", "--language", "toy"], "no context `no`"),
        (
            ["--designer", "claude", "--resume", "--max-iterations", "3", "--language", "toy"],
            "manifest sets these; omit --language and --max-iterations",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(seated: Any, arguments: list[str], said: str):
    assert said in refused("scale", *arguments)


def test_several_versions_at_once_need_times(project: Any, seated: Any, make: Any):
    start.start_campaign(project, make.OP, "cpu", "toy", objective="energy")
    assert "decides by energy" in refused("scale", "--designer", "claude", "--resume", "--parallel", "2")


def test_a_campaign_of_another_operator_is_refused(seated: Any, campaign: Any):
    assert f"{campaign.name} optimizes scale on cpu" in refused(
        "norm", "--designer", "claude", "--campaign", campaign.name
    )
    assert "optimizes scale on cpu" in refused(
        "scale", "--target", "h200", "--designer", "claude", "--campaign", campaign.name
    )


def test_no_second_campaign_is_begun_beside_an_unfinished_one(seated: Any, campaign: Any):
    said = refused("scale", "--designer", "claude", "--target", "cpu", "--language", "toy")
    assert (
        f"{campaign.name} is not finished: continue it with `warpsmith optimize scale --designer claude --resume`"
        in said
    )
    assert [path.name for path in campaign.folder.parent.glob("*/manifest.yaml")] == ["manifest.yaml"]


def test_resume_takes_the_newest_unfinished_one(project: Any, seated: Any, make: Any):
    older = start.start_campaign(project, make.OP, "cpu", "toy", max_iterations=1)
    newer = start.start_campaign(project, make.OP, "cpu", "toy", max_iterations=1)
    os.utime(newer.folder / "manifest.yaml", (time.time() + 9, time.time() + 9))
    assert [c.name for c in list_unfinished(project, make.OP, None)] == [newer.name, older.name]
    assert list_unfinished(project, make.OP, "h200") == []
    result = run("scale", "--designer", "claude", "--resume")
    assert result.exit_code == 0, result.output
    assert (len(newer.records()), len(older.records())) == (1, 0)
    named = run("scale", "--designer", "claude", "--campaign", older.name)
    assert named.exit_code == 0, named.output
    assert len(older.records()) == 1


def test_a_campaign_waits_until_its_best_version_was_raced(campaign: Any, designer: Any, lab: Any, make: Any):
    designer.rounds = 1
    run_loop(campaign, designer)
    assert list_unfinished(campaign.project, "scale", "cpu") == [campaign]
    best = make.evaluation(campaign.project.kernels / "scale/toy/v1.toy")
    (campaign.folder / "final.json").write_text(best.model_dump_json())
    assert list_unfinished(campaign.project, "scale", "cpu") == []
    (campaign.rounds / "001" / "record.json").write_text("{")
    assert list_unfinished(campaign.project, "scale", "cpu") == [campaign]


def test_a_stop_says_what_stands_and_how_to_go_on(seated: Any, campaign: Any):
    def stopped(*_: Any) -> None:
        raise AgentStopped("The budget of $1.00 is spent.")

    seated.plan = stopped
    result = run("scale", "--designer", "claude", "--resume")
    assert isinstance(result.exception, AgentStopped)
    assert result.exception.exit_code == 7
    place = f"devlog/scale/{campaign.name}"
    assert "The budget of $1.00 is spent. STRATEGIZE of round 2 is due;" in str(result.exception)
    assert place in str(result.exception)
    assert "`warpsmith optimize scale --designer claude --resume`" in str(result.exception)


def test_ctrl_c_is_exit_code_130(seated: Any, campaign: Any):
    seated.breaks_at = "plan:2"
    result = run("scale", "--designer", "claude", "--campaign", campaign.name)
    assert result.exit_code == 130
    assert "warpsmith: Interrupted. STRATEGIZE of round 2 is due" in result.stderr
    assert f"--designer claude --campaign {campaign.name}`." in result.stderr


def test_the_running_cost_is_never_cut_off():
    line = command._progress_line("round 2", "STRATEGIZE", "word " * 40, "$0.12", 80)
    assert len(line) == 80
    assert line.plain.startswith("round 2  STRATEGIZE word word")
    assert line.plain.endswith("… $0.12")
    assert command._progress_line("round 2", "SELECT", "cpp", "$0.12", 80).plain == "round 2  SELECT     cpp $0.12"
    assert command._progress_line("", "REPORT", "[b]raced[/b]\nit").plain == "         REPORT     [b]raced[/b] it"


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ((), {"minimum-gain": 0.02}),
        (("--max-iterations", "3"), {"max-iterations": 3}),
        (("--max-iterations", "3", "--minimum-gain", "0.1"), {"max-iterations": 3, "minimum-gain": 0.1}),
        (
            ("--minimum-gain", "0.01", "--minimum-gain-per", "usd"),
            {"minimum-gain": 0.01, "minimum-gain-per": "usd"},
        ),
    ],
)
def test_rounds_that_are_paid_for_have_a_minimum_gain(seated, monkeypatch, options, settings) -> None:
    chosen: list[dict[str, object]] = []

    def start_nothing(*arguments: Any) -> None:
        chosen.append({name: value for name, value in arguments[4].items() if value is not None})
        raise Misuse("seen")

    monkeypatch.setattr(command, "_start_campaign", start_nothing)
    new = ("scale", "--target", "cpu", "--language", "toy")
    assert refused(*new, "--designer", "claude", *options) == "seen"
    assert chosen == [settings]


def test_rounds_that_cost_no_agent_have_no_minimum_by_default(seated, monkeypatch) -> None:
    monkeypatch.setattr(designers, "_drafts_designer", lambda _: (None, None))
    monkeypatch.setattr(command, "_start_campaign", lambda *arguments: refuse(arguments[4]))

    def refuse(settings: dict[str, object]) -> None:
        raise Misuse(str(settings["minimum-gain"]))

    new = ("scale", "--target", "cpu", "--language", "toy", "--drafts", "d")
    assert refused(*new) == "None"
    assert refused(*new, "--minimum-gain", "0.5") == "0.5"
    assert "a dollar has no default" in refused(*new, "--minimum-gain-per", "usd")
