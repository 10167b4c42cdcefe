"""A race as a table, a page and a plot: every side shown, nothing that was not measured."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from unittest.mock import MagicMock

import pytest
from pydantic import ValidationError
from rich.console import Console

from warpsmith import files
from warpsmith.core.race import NEAR, RaceRecord, RaceSide
from warpsmith.project import Project
from warpsmith.reporting import format, plots, race


def side(name, joules=None, uncaptured="", **changes):
    passed = {"status": "PASSED", "correctness": {"calls": 2, "worst": 0.25, "relative_error": 1e-7}}
    return {"side": name, "joules": joules, "uncaptured": uncaptured, **passed, **changes}


@pytest.fixture
def record(make):
    """`record(gpu=True)`: two workloads; a peer is wrong, one in no graph, one near, another missing."""

    def build(gpu=True, workload="64x64", host=None):
        def timing(clock, **sides):
            return make.passed(**sides)["timing"] | {"clock": clock}

        everyone = {"reference": 2.0, "torch.compile": 1.5, "slow-host": 3.0, "rounds": 1.4}
        eager = {"joules": 0.07, "joules_mode": "eager"} if gpu else {}
        far = {"calls": 2, "worst": 5.25, "relative_error": 1e-3}
        result = {
            "workload": workload,
            "set": "representative",
            "eager": timing("events" if gpu else "parent", **everyone),
            "graph": timing("graph", reference=1.8, rounds=1.1, **{"torch.compile": 1.2}) if gpu else None,
            "sides": [
                side("solution", joules=0.0123 if gpu else None, host_seconds=host),
                side("reference", joules=0.05 if gpu else None),
                side("torch.compile"),
                side("slow-host", uncaptured="it waits | for the device" if gpu else "", **eager),
                side("rounds", status=NEAR, message="y[0] is off", correctness=far, differs="squares | in place"),
                side("off", status="INCORRECT_NUMERICAL", message=f"y[0] is 3 {make.HOSTILE}"),
            ],
        }
        sides = (("reference", 2.0), ("rounds", 1.4), ("torch.compile", 1.5))
        means = [make.aggregate(name, speedup) for name, speedup in sides]
        return RaceRecord.model_validate(
            {
                "definition": "softmax",
                "solution": "triton/v7",
                "target": "h200",
                "provenance": make.evaluation().provenance.model_dump(),
                "results": [result, result | {"workload": "128x128"}],
                "aggregates": {"eager": means, "graph": means[:1]} if gpu else {"eager": means},
                "absent": {"quack": "pip install quack-kernels"},
                "notes": ["the clocks were held down"],
            }
        )

    return build


def shown(record, path=None):
    console = Console(width=60, soft_wrap=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(race.race_table(record, path))
    console.file.close()
    return console.export_text()


def test_every_side_has_a_row_with_both_times_apart(record):
    lines = shown(record(), "devlog/softmax/races/001-h200").splitlines()
    ours, reference, compiled, slow, near, off = (line for line in lines[1:] if line.startswith("64x64"))
    assert ours.split()[:4] == ["64x64", "triton/v7", "12.3", "us"]
    assert "0.0123" in ours
    assert "2.00x [1.96, 2.04]" in reference
    assert "1.80x [1.76, 1.84]" in reference
    assert "50.0 %" in ours
    assert "correct, 0.25 of the bound" in compiled
    assert "no CUDA graph: it waits | for the device" in slow
    assert "energy of eager calls" in slow
    assert "rounds (near)" in near
    assert "1.10x [1.06, 1.14]" in near
    assert "rounds differently: worst 5.25 of its bound" in near
    assert "INCORRECT_NUMERICAL: y[0] is 3" in off
    assert "12.3" not in off
    assert "us" not in off.split("INCORRECT")[0]
    assert lines[-5].startswith("near: ")
    assert lines[-4:] == [
        "rounds: squares | in place",
        "missing: quack: pip install quack-kernels",
        "note: the clocks were held down",
        "devlog/softmax/races/001-h200",
    ]
    assert "geometric mean  rounds (near)" in lines[-7]


def test_columns_that_nothing_fills_are_left_out(record):
    head = shown(record(gpu=False)).splitlines()[0]
    assert "graph" not in head
    assert "J a call" not in head
    assert "eager" in head


def test_the_page_names_what_is_wrong_and_what_is_missing(record, make):
    page = race.race_page(record())
    assert "| 64x64 | PyTorch eager | 1.00 ms | 2.00x [1.96, 2.04] |" in page
    assert "- quack: pip install quack-kernels" in page
    assert "draws the speedups in `race.svg`" in page
    assert "<script>" not in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 12 + 3
    assert "- near: " in page
    assert "- rounds: squares \\| in place" in page
    assert page == race.race_page(record())


def test_the_plot_is_of_graph_times_where_there_are_any(record):
    pytest.importorskip("matplotlib")
    svg = race.race_plot(record())
    assert svg == race.race_plot(record())
    words = " ".join(ElementTree.fromstring(svg).itertext())
    assert "64x64" in words
    assert "torch.compile" in words
    assert "slow-host" not in words  # it is in no graph
    assert "rounds (near)" in words
    assert "(near), hollow: rounds differently, see the page" in words
    assert "slow-host" in " ".join(ElementTree.fromstring(race.race_plot(record(gpu=False))).itertext())
    race.race_plot(record(workload="$\\frac$"))


def test_marks_of_what_rounds_otherwise_are_hollow(record):
    axes = MagicMock()
    race._draw(axes, record())
    styles = {call.kwargs["label"]: call.kwargs["fillstyle"] for call in axes.errorbar.call_args_list}
    assert styles == {"PyTorch eager": "full", "torch.compile": "full", "rounds (near)": "none"}


def test_a_race_is_kept_whole_under_a_number_of_its_own(record, tmp_path, monkeypatch):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    first, second = (race.write_race(project, record()) for _ in range(2))
    assert [folder.relative_to(tmp_path).as_posix() for folder in (first, second)] == [
        "devlog/softmax/races/001-h200",
        "devlog/softmax/races/002-h200",
    ]
    assert RaceRecord.model_validate_json((second / "record.json").read_bytes()) == record()
    assert (second / "race.md").read_text() == race.race_page(record(), plots.plots_unavailable())
    monkeypatch.setattr(plots, "plots_unavailable", lambda: "no matplotlib")
    assert sorted(path.name for path in race.write_race(project, record()).iterdir()) == ["race.md", "record.json"]


def test_a_race_that_was_ended_says_what_it_lacks(record, tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    part = record().model_copy(update={"unraced": ("8192x8192", "1x1")})
    folder = race.write_race(project, part)
    assert sorted(path.name for path in folder.iterdir()) == ["race.md", "record.json"]
    assert "- ended early, not raced: 8192x8192, 1x1" in (folder / "race.md").read_text()
    assert race.write_race(project, record(), folder) == folder
    assert RaceRecord.model_validate_json((folder / "record.json").read_bytes()) == record()
    assert "ended early" not in (folder / "race.md").read_text()
    assert [path.name for path in folder.parent.iterdir()] == ["001-h200"]


def test_pages_come_from_records_alone(record, tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    folders = [race.write_race(project, record()), race.write_race(project, record(gpu=False))]
    before = {path: path.read_bytes() for folder in folders for path in folder.iterdir()}
    for path in before:
        if path.name != race.RECORD:
            path.unlink()
    for path, content in race.render_races(project, "softmax").items():
        assert path not in folders
        files.write_file(path, content if isinstance(content, bytes) else content.encode())
    assert {path: path.read_bytes() for folder in folders for path in folder.iterdir()} == before
    assert race.render_races(project, "square") == {}
    (folders[0] / race.PLOT).unlink()
    drawn = race.render_races(project, "softmax", redraw=False)
    assert {path for path in drawn if path.name == race.PLOT} == {folders[0] / race.PLOT}, "the other is there"
    (folders[0] / race.RECORD).write_text("{")
    assert {path.parent for path in race.render_races(project, "softmax")} == {folders[1]}


def test_the_race_of_a_version_that_was_struck_since_says_why(record, tmp_path):
    project = Project(tmp_path, tmp_path / "kernels", tmp_path / "devlog", tmp_path / "docs")
    page = race.write_race(project, record()) / "race.md"
    why = {record().provenance.solution_sha256: "it never waits for the *first* launch."}
    said = race.render_races(project, "softmax", why)[page]
    assert f"**{record().solution} was struck after this race: " in said
    assert "it never waits for the \\*first\\* launch.**" in said
    other = {"f" * 64: "another version's reason"}
    assert race.render_races(project, "softmax", other)[page] == page.read_text()


def test_nothing_is_marked_where_no_side_is_near(record):
    plain = record().model_dump()
    for result in plain["results"]:
        result["sides"] = [one for one in result["sides"] if one["side"] != "rounds"]
    text = race.race_page(RaceRecord.model_validate(plain))
    assert "near" not in text
    assert "otherwise" not in text


@pytest.mark.parametrize(
    ("side", "why"),
    [({"status": "TIMEOUT"}, "must say why"), ({"status": NEAR, "message": "off"}, "must say by how much")],
)
def test_a_side_that_did_not_pass_must_say_why(side, why):
    with pytest.raises(ValidationError, match=why):
        RaceSide.model_validate({"side": "quack", **side})


def test_host_times_have_a_column_where_they_were_measured(record):
    ours, reference = race.race_rows(record(host=8.5e-6))[:2]
    assert (ours.host, reference.host) == ("8.50 us", format.ABSENT)
    page, without = race.race_page(record(host=8.5e-6)), race.race_page(record())
    assert "| host |" in page
    assert "until an eager call returns" in page
    assert "| host |" not in without
    assert "until an eager call returns" not in without
