"""`warpsmith program regions`: what it prints, and how `extract` takes a region."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warpsmith.cli import main as entry
from warpsmith.program.compiled.models import RegionRow, StepRegions
from warpsmith.program.operators import accepted_regions
from warpsmith.program.regions import extract_region, survey

ROWS = (
    RegionRow(
        digest="12abcdef", kind="norm", operators=("add", "rsqrt"), kernels=("a", "b"), chained=True,
        backward=True,
        calls=3, seconds=1e-4, share=0.25, ceiling=4 / 3, inputs=("8x16 float32",), outputs=("8x1 float32",),
    ),
    RegionRow(
        digest="", kind="", operators=("inductor_random",), kernels=("c",), backward=False, calls=1, seconds=4e-5,
        share=0.1, ceiling=10 / 9, refusal="draws random numbers",
    ),
    RegionRow(
        digest="00000000", kind="copy", operators=("clone",), kernels=("d",), backward=False, calls=1,
        seconds=1e-7,
        share=0.001, ceiling=1.001,
    ),
)  # fmt: skip
REGIONS = StepRegions(
    program="train.py", device="cpu", torch="2", graphs=2, step_seconds=4e-4, kernel_seconds=2e-4, rows=ROWS,
    measured="2026-11-21 12:00",
)  # fmt: skip


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`called(*arguments)`: the exit code of `warpsmith program`, in a project with `train.py`."""
    (tmp_path / "warpsmith.toml").touch()
    (tmp_path / "train.py").write_text("def train_step():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(survey, "list_regions", lambda *_, **__: REGIONS)
    monkeypatch.setattr(accepted_regions, "list_definitions", lambda project: {"12abcdef": "mine"})

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["warpsmith", "program", *arguments])
        with pytest.raises(SystemExit) as exit_:
            entry.main()
        return int(exit_.value.code or 0)

    return run


def test_regions_are_listed_with_their_definitions_and_refusals(called, capsys):
    assert called("regions", "train.py", "--step", "train_step") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "400 us per step" in lines[0]
    assert "2 compiled graphs" in lines[0]
    assert lines[2].split() == ["12abcdef", "norm", "backward", "3", "100", "us", "25.0%", "1.33x", "mine"]
    assert "a chain of 2 kernels" in lines[3]
    assert "8x16 float32 -> 8x1 float32" in lines[4]
    assert "draws random numbers" in lines[6]
    assert lines[7].startswith("1 more")
    assert "00000000" not in "".join(lines)


def test_the_list_as_json_is_the_record(called, capsys):
    assert called("regions", "train.py", "--step", "train_step", "--json") == 0
    assert StepRegions.model_validate_json(capsys.readouterr().out) == REGIONS


def test_extract_takes_a_region_with_its_options(called, monkeypatch):
    calls: list[tuple[str, str]] = []

    def extract(project, resolved, digest, **options):
        calls.append((digest, options["name"]))
        raise SystemExit(0)

    monkeypatch.setattr(extract_region, "extract_region", extract)
    assert called("extract", "train.py", "--step", "train_step", "--region", "12ab", "--name", "mine") == 0
    assert calls == [("12ab", "mine")]
    assert called("extract", "train.py", "--step", "train_step", "--region", "12ab", "--op", "aten::mul") == 2
