"""`warpsmith uplift`: from a brief to the overview, and what is refused with one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from session_clock import use_scripted_clock
from typer import Typer
from typer.testing import CliRunner, Result
from uplift_samples import KERNEL
from uplift_samples import square_suite as square_suite

from warpsmith.cli import uplift as command
from warpsmith.core.evaluation import REFERENCE
from warpsmith.errors import MissingInput, Misuse
from warpsmith.uplift import judging

Run = Callable[..., Result]


@pytest.fixture
def run(square_suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("uplift", ...)` in an empty folder, which raises what the command raises."""
    monkeypatch.chdir(tmp_path)
    app = Typer()
    command.register(app)

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(app, ["uplift", *arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    app.callback()(lambda: None)
    return invoke


def test_from_the_brief_to_the_overview(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    use_scripted_clock(monkeypatch.setattr, lambda source: 1e-4 / int(re.search(r"SPEED = (\d+)", source)[1]))
    monkeypatch.setattr(judging, "BASELINES", (REFERENCE,))
    for arm, speed in (("bare", 2), ("plugin", 4)):
        run("brief", arm, "square", "--out", arm)
        folder = tmp_path / arm
        (folder / "submission/kernel.cpp").write_text(KERNEL.replace("SPEED = 2", f"SPEED = {speed}"))
        (folder / "submission/claim.json").write_text('{"correct": true, "speedup": 4}')
        (folder / "device/request.sh").write_text("true")
        (folder / "device/ready").touch()
        assert "status 0" in run("device", "bare", "plugin").stdout
        assert "submitted" in run("submit", arm, "--designer", "m-1", "--tokens", "7").stdout
    assert run("judge", "--target", "cpu", "--seconds", "0.1").exit_code == 0
    page = run("report").stdout
    assert re.search(r"\| square \| (1\.9|2\.0)\dx \|", page)
    assert "| square-bare-1 | yes |" in page
    assert "designed by m-1" in page


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("brief", "naked", "square", "--out", "new"), Misuse, "no arm `naked`; it has: bare"),
        (("brief", "bare", "cube", "--out", "new"), Misuse, "no operator `cube`"),
        (("submit", "new", "--designer", "m-1"), MissingInput, r"cell\.json does not exist"),
        (("report",), MissingInput, "no submissions"),
        (("judge", "--target", "cpu"), MissingInput, "no submissions"),
    ],
)
def test_wrong_input_is_one_sentence_and_writes_nothing(run: Run, tmp_path: Path, arguments, error, message: str):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(error, match=message):
        run(*arguments)
    assert sorted(tmp_path.iterdir()) == before


def test_an_operator_that_nobody_submitted_is_named(run: Run, tmp_path: Path):
    run("brief", "bare", "square", "--out", "a")
    (tmp_path / "a/submission/kernel.py").write_text("")
    (tmp_path / "a/submission/claim.json").write_text('{"correct": true, "speedup": 4}')
    run("submit", "a", "--designer", "m-1")
    with pytest.raises(Misuse, match=r"no submission of cube; it has: square"):
        run("judge", "cube", "--target", "cpu")
