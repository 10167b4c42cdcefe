"""Compiled kernels of a source wait for the next worker that loads the same source, and for no other."""

from __future__ import annotations

from pathlib import Path

from warpsmith.lab import side


def test_only_plain_files_are_kept(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "ab").mkdir(parents=True)
    (made / "ab" / "kernel.cubin").write_bytes(b"machine code")
    (made / "secret").symlink_to("/etc/hostname")
    (made / "folder").symlink_to("/etc")
    side._copy_plain(made, tmp_path / "kept")
    assert [path.relative_to(tmp_path / "kept").as_posix() for path in sorted((tmp_path / "kept").rglob("*"))] == [
        "ab",
        "ab/kernel.cubin",
    ]


def test_no_more_than_the_limit_is_kept(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "made").mkdir()
    for name in "abc":
        (tmp_path / "made" / name).write_bytes(b"x" * 400)
    monkeypatch.setattr(side, "_MOST_COMPILED", 900)
    side._copy_plain(tmp_path / "made", tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    side._copy_plain(tmp_path / "never made", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
