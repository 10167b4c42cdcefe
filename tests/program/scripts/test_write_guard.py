"""Writes of a script to the project: refused, but for what the user names and what tools keep for themselves."""

from __future__ import annotations

import os
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
        ("os.mkdir", "runs", None),
        ("os.remove", "train.py", None),
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
        ("os.mkdir", "out", None),
        ("open", ".cache/x", WRITE),
        ("open", "pkg/__pycache__/x.pyc", WRITE),
        ("open", "../elsewhere", WRITE),
        ("os.mkdir", ".", None),
        ("exec", "train.py", None),
    ],
)
def test_reads_and_other_writes_pass(guard: WriteGuard, tmp_path: Path, event: str, path: str, flags: int) -> None:
    guard._audit(event, (str(tmp_path / path), "w", flags))
    assert not (tmp_path / ".report").exists()
