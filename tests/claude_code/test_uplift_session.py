"""`warpsmith uplift run`: the real SDK and CLI play a cell with a scripted model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import clean_env
from messages_api import Actor, MessagesAPI, bash, text, tool
from typer import Typer
from typer.testing import CliRunner
from uplift_samples import KERNEL
from uplift_samples import square_suite as square_suite

from warpsmith.cli import uplift as command
from warpsmith.uplift import submission
from warpsmith.uplift.models import CellRecord

WAIT = "until [ -e device/result-1.txt ]; do sleep 0.1; done; cat device/result-1.txt"


@pytest.fixture(autouse=True)
def nothing_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean = clean_env(tmp_path / "home", "http://127.0.0.1:9", CLAUDE_CODE_MAX_RETRIES="1")
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in clean.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def play(square_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CellRecord]:
    """`play(turns)`: the record of a bare cell whose agent takes these turns."""
    monkeypatch.chdir(tmp_path)
    app = Typer()
    command.register(app)
    app.callback()(lambda: None)

    def begin(*turns) -> CellRecord:
        with MessagesAPI(
            [Actor("agent", lambda call: "Your task is brief.md" in call.said_by("user"), list(turns))]
        ) as api:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
            arguments = ["uplift", "run", "square", "--arm", "bare", "--repetitions", "1", "--minutes", "1"]
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert api.errors == []
        (record,) = submission.read_records(tmp_path / "uplift-results")
        return record

    return begin


def test_an_agent_uses_the_device_and_submits(play: Callable[..., CellRecord]):
    record = play(
        [bash("cat brief.md | head -1; echo 'echo measured' > device/request.sh; touch device/ready")],
        [bash(WAIT)],
        [
            tool("Write", file_path="submission/kernel.cpp", content=KERNEL),
            tool("Write", file_path="submission/claim.json", content='{"correct": true, "speedup": 2}'),
        ],
        [text("Done.")],
    )
    effort = record.submission.effort
    assert (record.submission.kernel, record.submission.claim.speedup) == ("kernel.cpp", 2)
    assert effort.device_calls == 1
    assert effort.tokens
    assert effort.turns
    assert "measured" in Path("uplift-cells/square-bare-1/device/result-1.txt").read_text()


def test_an_agent_that_leaves_nothing_is_submitted_as_wrong(play: Callable[..., CellRecord]):
    record = play([text("I cannot.")])
    assert not record.submission.claim.correct
    assert "no kernel" in record.submission.claim.notes
    assert record.submission.effort.device_calls == 0
