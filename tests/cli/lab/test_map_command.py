"""`warpsmith map`: what it measures, what it prints, and what it refuses with nothing changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from map_samples import make_map, plane

from warpsmith.cli import main as entry
from warpsmith.lab.calibration import measurement
from warpsmith.lab.performance_map import measure, store
from warpsmith.reporting.performance_map import page

SHAPES = plane((64, 128), (4096, 4096), axes=("rows", "cols"))
RECORD = make_map(SHAPES, {"64x128": True}, definition="rmsnorm")


class Scripted:
    """Stands in for `MapMeasurement`: it holds its request and yields the cells of a record."""

    requests: list[measure.MapRequest] = []

    def __init__(self, request):
        self.requests.append(request)
        self.best, self.failures = "toy/v1", {}

    def run(self):
        yield from ((cell.workload, page.first_times(cell)) for cell in RECORD.cells)
        self.failures["toy/v9"] = "it is wrong"
        yield RECORD.cells[0].workload, RECORD.cells[0].confirmation

    def is_shown(self, confirmation):
        return True

    def record(self):
        return RECORD


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`called(*arguments)`: the exit code; the measurement is scripted."""
    (tmp_path / "warpsmith.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "MapMeasurement", Scripted)
    monkeypatch.setattr(measurement, "ensure_measurement", lambda *_: SimpleNamespace())
    monkeypatch.setattr(page.picture, "draw_picture", lambda record: b"")
    monkeypatch.setattr(Scripted, "requests", [])
    monkeypatch.setattr(page.MapLines, "_line", lambda self, name, cells, last: f"{name} {last}")

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "map", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0)

    return run


def test_accepted_versions_at_timed_shapes_and_a_grid_and_the_result_in_the_project_at_hand(
    called, capsys, tmp_path
):
    assert called("rmsnorm", "--target", "cpu", "--shapes", "6", "--seconds", "9") == 0
    (request,) = Scripted.requests
    assert [version.solution for version in request.versions] == ["cpp/v3", "cpp/v2", "cpp/v1"]
    assert [workload.name for workload in request.workloads][:3] == ["4096x4096", "512x8192", "2048x1000"]
    assert 3 < len(request.workloads) <= 6
    assert request.seconds == 9
    assert all(path.is_file() for path in request.sources.values())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("rmsnorm on cpu: cpp/v3, cpp/v2, cpp/v1 at ")
    assert lines[2:4] == ["64x128 toy/v2", "4096x4096 toy/v1"]
    assert "64x128, again: toy/v2 is 1.50x" in lines[4]
    assert lines[5] == "toy/v9: it is wrong"
    assert lines[-1] == "devlog/rmsnorm/maps/001-cpu"
    assert store.read_map(tmp_path / lines[-1] / store.RECORD) == RECORD


def test_chosen_versions_and_sizes_as_json(called, capsys):
    assert called("rmsnorm", "--target", "cpu", "--versions", "cpp/v1, cpp/v3", "--size", "rows=3", "--json") == 0
    (request,) = Scripted.requests
    assert [version.solution for version in request.versions] == ["cpp/v3", "cpp/v1"]
    assert "rows=3" in [workload.name for workload in request.workloads]
    assert json.loads(capsys.readouterr().out)["best"] == "toy/v1"


def test_the_last_map_is_shown_again(called, capsys):
    assert called("rmsnorm", "--target", "cpu", "--show") == 3
    assert "rmsnorm has no map on `cpu` yet" in capsys.readouterr().err
    called("rmsnorm", "--target", "cpu")
    printed = capsys.readouterr().out.splitlines()
    assert called("rmsnorm", "--target", "cpu", "--show") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == printed[-3:]
    assert len(Scripted.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("rmsnorm", "--versions", "cpp/v3"), 2, "from 2 to 6 versions, not 1"),
        (("rmsnorm", "--versions", "cpp/v3,cpp/v77"), 2, "cpp/v77 of rmsnorm does not exist"),
        (("rmsnorm", "--versions", "cpp/v3,cpp/v4"), 2, "cpp/v4 of rmsnorm was not accepted"),
        (("rmsnorm", "--versions", "v3,v4"), 2, "`v3` is no version"),
        (("rmsnorm", "--size", "depth=3"), 2, "no axis `depth`"),
        (("rmsnorm_quant_fp8", ), 3, "No version of rmsnorm_quant_fp8 was accepted on `cpu`"),
        (("nope",), 3, "No operator `nope`"),
        (("rmsnorm", "--show", "--size", "rows=3"), 2, "omit --versions and --size"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(called, capsys, tmp_path, arguments, code, told):
    assert called(*arguments, "--target", "cpu") == code
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.err.count("\n") == 1
    assert (printed.out, Scripted.requests) == ("", [])
    assert [path.name for path in tmp_path.iterdir()] == ["warpsmith.toml"]


def test_a_version_of_another_definition_is_no_accepted_one(called, capsys, monkeypatch):
    from warpsmith.use import choice

    monkeypatch.setattr(choice.definition_file, "definition_sha256", lambda path: "f" * 64)
    assert called("rmsnorm", "--target", "cpu") == 3
    assert "No version of rmsnorm was accepted on `cpu` under its definition" in capsys.readouterr().err


def test_a_measurement_that_is_killed_leaves_nothing(called, monkeypatch, tmp_path):
    def run(self):
        yield from ((cell.workload, page.first_times(cell)) for cell in RECORD.cells)
        raise KeyboardInterrupt

    monkeypatch.setattr(Scripted, "run", run)
    monkeypatch.setattr(sys, "argv", ["warpsmith", "map", "rmsnorm", "--target", "cpu"])
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        entry.main()
    assert not (tmp_path / "devlog").exists()
