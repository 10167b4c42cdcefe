"""`warpsmith route` as a user calls it, with the agents and languages that are really there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from warpsmith import languages, project
from warpsmith.cli import main as entry
from warpsmith.driver import routing


@pytest.fixture(autouse=True)
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without anything; the plugin of these two specialists, the shipped hardware pages."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warpsmith.toml").write_text("")
    for agent in ("triton-specialist", "cpp-specialist", "profiler"):
        path = tmp_path / "shipped" / "agents" / f"{agent}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "shipped" / "docs").symlink_to(project.SHIPPED / "docs")
    monkeypatch.setattr(project, "SHIPPED", tmp_path / "shipped")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["warpsmith", "route", *arguments])
    with pytest.raises(SystemExit) as exit_:
        entry.main()
    return int(exit_.value.code or 0)


def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(monkeypatch, *arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_one_line_a_step_then_notes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    lines = told(monkeypatch, capsys, "--target", "b200")
    assert lines[0] == "1. warpsmith:triton-specialist: write a Triton kernel"
    assert len(lines) == 2
    assert told(monkeypatch, capsys, "--target", "h200")[1].startswith("CuTe DSL would do as well: ")
    assert told(monkeypatch, capsys, "--target", "cpu")[0].startswith("1. warpsmith:cpp-specialist: ")
    assert told(monkeypatch, capsys, "--task", "profile")[0].startswith("1. warpsmith:profiler: ")
    assert told(monkeypatch, capsys, "--task", "review")[0].startswith("1. not there yet, reviewer: ")


def test_an_entry_on_whole_programs_is_a_task(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    lines = told(monkeypatch, capsys, "--task", "fused-optimizer")
    assert lines[0].startswith("1. not there yet, program-specialist: ")
    assert "`warpsmith program apply" in lines[1]
    lines = told(monkeypatch, capsys, "--task", "cuda-graphs-for-launch-bound")
    assert lines[0].startswith("1. not there yet, cuda-graph-specialist: ")
    assert run(monkeypatch, "--task", "operator-fusion") == 2  # about one kernel


def test_a_kernels_file(shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (shipped / "gelu.py").write_text("import triton\n")
    improve = ["1. warpsmith:triton-specialist: improve the existing kernel, a Triton kernel"]
    for arch in ("sm_90", "sm_100"):
        assert told(monkeypatch, capsys, "--arch", arch, "--kernel", "gelu.py") == improve
    version = shipped / "kernels" / "softmax" / "cutedsl" / "v3.py"
    version.parent.mkdir(parents=True)
    version.write_text("import triton\n")  # the folder decides for a version
    assert told(monkeypatch, capsys, "--kernel", str(version))[0].startswith(
        "1. not there yet, cutedsl-specialist"
    )


def test_tileir_is_a_second_step_of_a_triton_kernel(
    shipped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    first, second, remark = told(monkeypatch, capsys, "--language", "Triton (Tile-IR)", "--target", "b200")
    assert first == "1. warpsmith:triton-specialist: write a Triton kernel"
    assert second.startswith("2. not there yet, tileir-specialist: write a TileIR solution, from the existing one")
    assert "`--language triton` judges the same source" in remark
    assert "`--language cutile` keeps that compiler" in remark
    (shipped / "gelu.py").write_text("import triton\n")
    lines = told(monkeypatch, capsys, "--language", "TileIR", "--arch", "sm_120", "--kernel", "gelu.py")
    assert lines[0].startswith("1. not there yet, tileir-specialist")
    lines = told(monkeypatch, capsys, "--language", "TileIR", "--target", "h200")
    assert lines[0] == "1. warpsmith:triton-specialist: write a Triton kernel"
    assert "does not run on sm_90" in lines[1]


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    route = json.loads("\n".join(told(monkeypatch, capsys, "--language", "CuTe DSL", "--json")))
    assert [(step["agent"], step["available"]) for step in route["steps"]] == [("cutedsl-specialist", False)]
    assert route["notes"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--target", "z9"), 2, "Unknown target `z9`; known: a100, b200"),
        (("--target", "b200", "--arch", "sm_90"), 2, "Give --target or --arch, not both"),
        (("--language", "Fortran"), 2, "Unknown language `Fortran`"),
        (("--task", "deploy"), 2, "Unknown task `deploy`"),
        (("--kernel", "gone.py"), 3, "gone.py does not exist"),
        (("--kernel", "exists"), 2, "`--kernel exists` does not say which language"),
        (("--kernel", "warpsmith.toml"), 2, "language is not recognised; give --language"),
    ],
)
def test_misuse(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    assert run(monkeypatch, *arguments) == code
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert said in told.err


def test_every_target_has_an_architecture():
    from warpsmith.lab.machine import hardware

    here = project.find_project()
    pages = [hardware.read_target_page(here, target).target for target in hardware.list_targets(here)]
    assert pages
    for page in pages:
        routing.parse_architecture("cpu" if page.kind == "cpu" else page.isa, languages.by_preference())
