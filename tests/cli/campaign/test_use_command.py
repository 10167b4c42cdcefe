"""`warpsmith use`: what it prints for operators that ship, and where there is nothing to use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def warpsmith(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warpsmith", *arguments]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "warpsmith.toml").write_text("")
    return tmp_path


def test_where_it_is_what_it_is_worth_and_how_it_is_called(empty: Path):
    done = warpsmith("use", "rmsnorm", at=empty)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("cpu: cpp/v")
    assert lines[1].strip().startswith("file: ")
    assert any("over PyTorch eager: " in line and "[" in line for line in lines)
    assert any("record: " in line for line in lines)
    assert lines[-2:] == ["from warpsmith import best", 'rmsnorm = best("rmsnorm")']


def test_the_same_as_json(empty: Path):
    done = warpsmith("use", "softmax", "--json", at=empty)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["target"]: one["language"] for one in found} == {"h200": "triton"}
    assert Path(found[0]["file"]).is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nope",), "No operator `nope`; there are: "),
        (("rmsnorm", "--target", "mi300x"), "No version of rmsnorm for `mi300x` was accepted yet"),
    ],
)
def test_nothing_to_use(arguments: tuple[str, ...], told: str, empty: Path):
    done = warpsmith("use", *arguments, at=empty)
    assert (done.returncode, done.stdout) == (3, "")
    assert told in done.stderr
