"""Tests for variants: sweeps are parsed, constants are set in one place, and slips are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.tuning.variants import MAX_VARIANTS, list_variants, parse_sweep

CPP = "constexpr int TILE = 64, PAD = 1;\n#define STAGES 3\n// run it\n"
PYTHON = "import triton\nTILE: int = 32\nlaunch(num_warps=4, scale=1.5)\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """One C++ file and one Triton file."""
    for name, text in (("a.cpp", CPP), ("b.py", PYTHON)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [tmp_path / "a.cpp", tmp_path / "b.py"]


def test_a_sweep_has_values_and_ranges():
    assert parse_sweep("TILE=64,128 STAGES=2..4,8") == {"TILE": (64, 128), "STAGES": (2, 3, 4, 8)}
    assert parse_sweep("") == {}


@pytest.mark.parametrize("text", ["TILE", "TILE=", "TILE=a", "TILE=1 TILE=2", "2=3", "TILE=1.5"])
def test_a_slip_in_a_sweep_is_named(text: str):
    with pytest.raises(Misuse, match="--sweep"):
        parse_sweep(text)


def test_constants_are_set_and_nothing_else(files: list[Path]):
    variants = list_variants(files[:1], {"TILE": (16, 64), "STAGES": (3, 4)})
    assert [variant.name for variant in variants] == [
        "a.cpp TILE=64 STAGES=3",
        "a.cpp TILE=16 STAGES=3",
        "a.cpp TILE=64 STAGES=4",
        "a.cpp TILE=16 STAGES=4",
    ]
    assert variants[0].text == CPP
    assert variants[3].text == CPP.replace("64", "16").replace("STAGES 3", "STAGES 4")


def test_files_take_turns_and_sweep_what_they_assign(files: list[Path]):
    variants = list_variants(files, {"TILE": (32, 64), "num_warps": (4, 8)})
    assert [variant.name for variant in variants] == [
        "a.cpp TILE=64",
        "b.py TILE=32 num_warps=4",
        "a.cpp TILE=32",
        "b.py TILE=32 num_warps=8",
        "b.py TILE=64 num_warps=4",
        "b.py TILE=64 num_warps=8",
    ]
    assert {variant.language for variant in variants} == {"cpp", "triton"}
    assert "num_warps=8, scale=1.5" in variants[3].text


def test_files_of_one_name_are_told_apart(files: list[Path], tmp_path: Path):
    other = tmp_path / "more" / "a.cpp"
    other.parent.mkdir()
    other.write_text(CPP, encoding="utf-8")
    assert [variant.name for variant in list_variants([files[0], other], {})] == [str(files[0]), str(other)]


@pytest.mark.parametrize(
    ("text", "sweep", "message"),
    [
        ("int TILE = 1;\n\nint x = TILE = 2;\n", {"TILE": (1,)}, "assigns `TILE` on lines 1, 3"),
        ("int TILE = 1;\n", {"TIL": (1,)}, "no file assigns `TIL`"),
        ("float TILE = 1.5;\n", {"TILE": (1,)}, "no file assigns `TILE`"),
        ("int TILE = 1;\n", {"TILE": range(MAX_VARIANTS + 1)}, f"at most {MAX_VARIANTS}"),
    ],
)
def test_a_sweep_that_does_not_fit_its_file(tmp_path: Path, text: str, sweep: dict, message: str):
    (tmp_path / "a.cpp").write_text(text, encoding="utf-8")
    with pytest.raises(Misuse, match=message):
        list_variants([tmp_path / "a.cpp"], sweep)


def test_a_constant_at_the_end_of_a_comparison(tmp_path: Path):
    """The line after `if n <= TILE:` gives it no value."""
    (tmp_path / "a.cpp").write_text("TILE = 8\nif n <= TILE:\n    few = 4\n", encoding="utf-8")
    (variant,) = list_variants([tmp_path / "a.cpp"], {"TILE": (16,)})
    assert variant.stamped.startswith("TILE = 16\nif n <= TILE:\n    few = 4\n")


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(MissingInput, match=r"gone\.cpp does not exist"):
        list_variants([tmp_path / "gone.cpp"], {})
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(Misuse, match="no language of the lab"):
        list_variants([tmp_path / "notes.txt"], {})
