"""Writes of a script to the project: refused, but for what the user names and what tools keep for themselves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from warpsmith.program.scripts.write_guard import WriteGuard

pytestmark = pytest.mark.own_process

READ, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT


@pytest.fixture
def guard(tmp_path: Path) -> WriteGuard:
    return WriteGuard(str(tmp_path), [str(tmp_path / "out")], tmp_path / ".report")


@pytest.mark.parametrize(
    ("event", "path", "flags"),
    [
        ("open", "ckpt.pt", WRITE),
        ("open", "data/train.bin", os.O_RDWR),
        ("os.mkdir", "runs", -1),
        ("os.truncate", "train.py", 0),
        ("open", "outer/x", WRITE),
    ],
)
def test_a_write_is_refused(guard: WriteGuard, tmp_path: Path, event: str, path: str, flags: int) -> None:
    with pytest.raises(PermissionError, match="lets it write no file"):
        guard._audit(event, (str(tmp_path / path), "w", flags))
    assert (tmp_path / ".report").read_text().splitlines()[0] == str(tmp_path / path)


@pytest.mark.parametrize(
    ("event", "path", "flags"),
    [
        ("open", "train.py", READ),
        ("open", "out/ckpt.pt", WRITE),
        ("os.mkdir", "out", -1),
        ("open", ".cache/x", WRITE),
        ("open", "pkg/__pycache__/x.pyc", WRITE),
        ("open", "../elsewhere", WRITE),
        ("os.mkdir", ".", -1),
        ("exec", "train.py", None),
    ],
)
def test_reads_and_other_writes_pass(guard: WriteGuard, tmp_path: Path, event: str, path: str, flags: int) -> None:
    guard._audit(event, (str(tmp_path / path), "w", flags))
    assert not (tmp_path / ".report").exists()


def test_paths_in_an_open_folder_are_those_of_that_folder(
    guard: WriteGuard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    for folder in (elsewhere, tmp_path / "kept"):
        folder.mkdir()
        (folder / "header.hpp").touch()
    monkeypatch.chdir(tmp_path)
    guard.install()
    shutil.rmtree(elsewhere)
    assert not elsewhere.exists()
    with pytest.raises(PermissionError, match="header"):
        shutil.rmtree(tmp_path / "kept")
    assert (tmp_path / "kept" / "header.hpp").exists()
