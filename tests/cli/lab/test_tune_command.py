"""`warpsmith tune`: winners go into a new version's file, and nothing else changes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from warpsmith.campaign import lab_requests
from warpsmith.cli.lab import tune as command
from warpsmith.lab.tuning import tune as lab
from warpsmith.lab.tuning.models import ScreenedConfig, Tuning, TuningRow

OLD = "// tuned: begin\nconstexpr int BLOCK = 1;  // for any\n"
NEW = OLD.replace("= 1", "= 2")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command in a project with v1 and v3, where tuning gives `text`."""
    folder = tmp_path / "kernels" / "norm" / "cpp"
    folder.mkdir(parents=True)
    for version in ("v1", "v3"):
        (folder / f"{version}.cpp").write_text(OLD)
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lab_requests, "lab_request", lambda *_, **asked: SimpleNamespace(**asked))
    app = typer.Typer()
    command.register(app)
    app.callback()(lambda: None)

    def call(text, *options):
        asked = []
        tried = (
            ScreenedConfig(condition="any", config={"BLOCK": 1}, step="hand-picked", seconds=2e-6),
            ScreenedConfig(condition="any", config={"BLOCK": 2}, step="again", seconds=1e-6, speedup=2.0,
                  interval={"low": 1.9, "high": 2.1}),
        )  # fmt: skip
        row = TuningRow(line=1, condition="any", config={"BLOCK": 2})
        found = Tuning(version="cpp/v1", definition="norm", target="cpu", device="a CPU", tried=tried, pruned=3,
                       left=4, seconds=5, rows=(row,))  # fmt: skip
        monkeypatch.setattr(lab, "tune_version", lambda *given: asked.append(given) or (found, text))
        arguments = ["tune", "kernels/norm/cpp/v1.cpp", "--target", "cpu", *options]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        return result.stdout, asked[0]

    return SimpleNamespace(call=call, folder=folder, root=tmp_path)


def test_winners_are_the_next_version(run):
    said, (request, seconds) = run.call(NEW, "--seconds", "7", "--shapes", "full")
    assert {path.name: path.read_text() for path in run.folder.iterdir()} == {
        "v1.cpp": OLD, "v3.cpp": OLD, "v4.cpp": NEW,
    }  # fmt: skip
    assert seconds == 7
    assert request.sets == lab_requests.EVERYTHING
    assert "BLOCK 2        again        1.00 us  2.00x [1.90, 2.10]" in said
    assert "2 tried in 5.00 s" in said
    assert "3 pruned by the conditions, 4 not reached" in said
    assert "`warpsmith judge kernels/norm/cpp/v4.cpp`" in said
    kept = run.root / ".warpsmith/tunings/norm-cpp-v1-cpu.json"
    assert Tuning.model_validate_json(kept.read_text()).written == "kernels/norm/cpp/v4.cpp"


def test_without_a_winner_no_version_is_written(run):
    said, (request, _) = run.call(OLD)
    assert sorted(path.name for path in run.folder.iterdir()) == ["v1.cpp", "v3.cpp"]
    assert request.sets == ("representative",)
    assert "no version was written" in said


def test_json(run):
    said, _ = run.call(NEW, "--json")
    assert json.loads(said)["tried"][1]["speedup"] == 2.0
