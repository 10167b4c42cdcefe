"""Folders of agents: what each arm gets, and what no arm gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from uplift_samples import MakeCell

from warpsmith.errors import Misuse
from warpsmith.uplift import layout, suite
from warpsmith.uplift.models import ARMS, Budget, Cell


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("arm", ARMS)
def test_an_arm_gets_its_material_and_no_other(make_cell: MakeCell, arm: str):
    files = names(make_cell(arm))
    assert {"brief.md", "cell.json", "start_triton.py", "start_cuda.py"} <= files
    has_lab = arm.startswith("plugin")
    assert ("bin/warpsmith" in files) == has_lab
    assert ("kernels/square/definition.py" in files) == has_lab
    assert ("plugin/agents/cuda-specialist.md" in files) == has_lab
    assert ("bench.py" in files) == ("reference.py" in files) == (not has_lab)
    assert any(name.startswith("knowledge/") for name in files) == (arm == "knowledge")


@pytest.mark.parametrize("arm", ARMS)
def test_no_arm_sees_a_hidden_size(make_cell: MakeCell, arm: str):
    folder = make_cell(arm)
    shown = [path for path in folder.rglob("*") if path.is_file() and "5003" in path.read_text()]
    assert [path.name for path in shown] == ["kernel.cpp"]  # the test's own submission


@pytest.mark.parametrize("arm", ["bare", "knowledge"])
def test_the_bare_material_does_not_speak_of_the_lab(make_cell: MakeCell, arm: str):
    folder = make_cell(arm)
    for name in ("brief.md", "reference.py", "bench.py", "start_triton.py", "start_cuda.py"):
        assert "warpsmith" not in (folder / name).read_text().casefold(), name


def test_arms_have_the_same_task(make_cell: MakeCell):
    budget = Budget(calls=5, call_seconds=12.5, minutes=17)
    briefs = {arm: (make_cell(arm, budget=budget) / "brief.md").read_text() for arm in ARMS}
    heads = {brief.split("## Device calls")[0] for brief in briefs.values()}
    assert len(heads) == 1
    head = heads.pop()
    for fact in ("`run(x, scale)`", "17 minutes", "5 device calls", "12.5 seconds", "n is no secret", "- small"):
        assert fact in " ".join(head.split()) or fact in head
    assert "- tail" not in head
    assert "out of bounds" in briefs["plugin-without-knowledge"]
    assert "knowledge search" in briefs["plugin"]


def test_a_folder_with_files_is_left_alone(make_cell: MakeCell):
    folder = make_cell()
    before = names(folder)
    with pytest.raises(Misuse, match="exists"):
        layout.lay_out_cell(Cell(operator="square", arm="plugin", repetition=1), folder)
    assert names(folder) == before


def test_an_unknown_operator_writes_nothing(square_suite: Path, tmp_path: Path):
    with pytest.raises(Misuse, match=r"no operator `cube`; it has: square"):
        layout.lay_out_cell(Cell(operator="cube", arm="bare", repetition=1), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("error", "result"), [("", "error 0"), (" + 1", "WRONG")])
def test_the_bench_of_the_bare_arm_finds_errors(make_cell: MakeCell, error: str, result: str):
    folder = make_cell()
    (folder / "kernel.py").write_text(f"def run(x, scale):\n    return x * x * scale{error}\n")
    command = [sys.executable, "bench.py", "kernel.py", "--fast"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert [line.split(";")[0] for line in lines] == ["small", "tail"]
    assert all(result in line for line in lines), run.stdout


def test_the_shipped_suite_is_whole():
    names = suite.operator_names()
    assert len(names) >= 4
    for name in names:
        public, hidden = suite.load_public(name).definition, suite.hidden_workloads(name)
        assert len(public.select("representative")) == len(hidden) == 4
        assert public.select("odd")
        sizes = [(w.axes, w.dtype) for w in (*public.workloads, *hidden)]
        assert len(sizes) == len({str(size) for size in sizes}), "a hidden size is public"
