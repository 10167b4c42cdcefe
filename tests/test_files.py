"""Files: a write is whole or not there, whatever system call fails."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from warpsmith import files, ownership


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def fail(monkeypatch: pytest.MonkeyPatch, call: str, after: int = 0, code: int = errno.ENOSPC) -> None:
    """Let a system call of `os` fail from its `after`-th use on."""
    real, left = getattr(os, call), [after]

    def broken(*arguments: object, **named: object) -> object:
        if left[0] <= 0:
            raise OSError(code, os.strerror(code))
        left[0] -= 1
        return real(*arguments, **named)

    monkeypatch.setattr(os, call, broken)


@pytest.mark.parametrize("content", ["täxt\n", b"\x00\xff", "", "x" * 300_000])
def test_write_puts_the_bytes_there_and_makes_folders(tmp_path: Path, content: str | bytes):
    path = tmp_path / "a" / "b" / "file"
    files.write_file(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["a", "a/b", "a/b/file"]


def test_write_goes_on_where_the_system_wrote_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:7])))
    files.write_file(tmp_path / "file", "0123456789" * 5)
    assert (tmp_path / "file").read_text() == "0123456789" * 5


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failing_write_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, before: str | None
):
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    with monkeypatch.context() as patch:
        fail(patch, call)
        with pytest.raises(OSError, match="No space left"):
            files.write_file(path, "new")
    assert names(tmp_path) == ([] if before is None else ["file"])
    assert before is None or path.read_text() == before


def test_a_disk_that_fills_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, real, sizes = tmp_path / "file", os.write, iter([5])
    path.write_text("old")

    def fills(descriptor: int, data: memoryview) -> int:
        size = next(sizes, None)
        if size is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, bytes(data[:size]))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fills)
        with pytest.raises(OSError, match="No space left"):
            files.write_file(path, "much longer than five")
    assert (path.read_text(), names(tmp_path)) == ("old", ["file"])


def test_an_interrupt_leaves_no_stray_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(descriptor: int, data: memoryview) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            files.write_file(tmp_path / "file", "new")
    assert names(tmp_path) == []


def test_file_and_folder_are_synced_before_and_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, r=real: (calls.append(n), r(*a))[1])
    files.write_file(tmp_path / "file", "x")
    assert calls == ["fsync", "replace", "fsync"]


def test_publish_makes_the_whole_folder(tmp_path: Path):
    files.publish_folder({"a.txt": "one", "b.bin": b"\x00"}, tmp_path / "rounds" / "001")
    assert names(tmp_path) == ["rounds", "rounds/001", "rounds/001/a.txt", "rounds/001/b.bin"]
    assert (tmp_path / "rounds" / "001" / "b.bin").read_bytes() == b"\x00"


@pytest.mark.parametrize("inside", [None, "a.txt"])
def test_publish_refuses_a_folder_that_is_there(tmp_path: Path, inside: str | None):
    folder = tmp_path / "001"
    folder.mkdir()
    if inside:
        (folder / inside).write_text("old")
    before = names(tmp_path)
    with pytest.raises(FileExistsError, match="001 exists already"):
        files.publish_folder({"a.txt": "new"}, folder)
    assert names(tmp_path) == before
    assert not inside or (folder / inside).read_text() == "old"


@pytest.mark.parametrize(
    ("call", "after"), [("write", 0), ("write", 1), ("fsync", 1), ("fsync", 2), ("rename", 0)]
)
def test_a_failing_publish_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, after: int):
    with monkeypatch.context() as patch:
        fail(patch, call, after)
        with pytest.raises(OSError, match="No space left"):
            files.publish_folder({"a.txt": "one", "b.txt": "two"}, tmp_path / "001")
    assert names(tmp_path) == []


def test_a_move_is_synced_at_both_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "open").mkdir()
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    files.move_path(tmp_path / "open", tmp_path / "rounds" / "001")
    assert (tmp_path / "rounds" / "001").is_dir()
    assert synced == [tmp_path / "rounds", tmp_path]


def test_a_folder_that_is_removed_is_gone_before_its_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "open"
    files.publish_folder({"plan.json": "{}"}, folder)
    with monkeypatch.context() as killed:
        killed.setattr(shutil, "rmtree", lambda *_, **__: None)
        files.remove_folder(folder)
    assert not folder.exists()
    (stray,) = tmp_path.iterdir()
    assert (stray / "plan.json").is_file()
    assert files.sweep_unfinished(tmp_path) == [], "its process may still be removing it"
    monkeypatch.setattr(ownership, "process_start", lambda _: "")  # and now it is dead
    assert files.sweep_unfinished(tmp_path) == [stray]
    files.remove_folder(folder)  # which is not there


def test_an_interrupted_replacement_puts_the_earlier_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "site"
    files.replace_folder({"a": b"earlier"}, folder)
    rename, names = os.rename, []

    def interrupt(source: object, to: object) -> None:
        names.append(to)
        if len(names) == 2:
            raise KeyboardInterrupt
        rename(str(source), str(to))

    monkeypatch.setattr(os, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace_folder({"a": b"later"}, folder)
    assert (folder / "a").read_bytes() == b"earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_sweep_removes_strays_directly_inside_and_nothing_else(tmp_path: Path):
    (tmp_path / ".tmp-file-1-aa").write_text("half")
    (tmp_path / ".tmp-001-1-bb").mkdir()
    (tmp_path / ".tmp-001-1-bb" / "a.txt").write_text("half")
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / ".tmp-mine").write_text("somebody's")
    (tmp_path / "tmp-file").write_text("kept")
    assert [path.name for path in files.sweep_unfinished(tmp_path)] == [".tmp-001-1-bb", ".tmp-file-1-aa"]
    assert names(tmp_path) == ["keep", "keep/.tmp-mine", "tmp-file"]
    assert files.sweep_unfinished(tmp_path) == []


def test_sweep_of_a_folder_that_is_not_there(tmp_path: Path):
    assert files.sweep_unfinished(tmp_path / "none") == []


def test_what_a_killed_write_leaves_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process cleans nothing up
        fail(patch, "replace")
        with pytest.raises(OSError, match="No space left"):
            files.write_file(tmp_path / "file", "new")
    monkeypatch.setattr(ownership, "process_start", lambda _: "")
    assert len(files.sweep_unfinished(tmp_path)) == 1
    assert names(tmp_path) == []


def test_sha256_is_that_of_the_bytes(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"abc")
    assert files.file_sha256(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_numbers_go_on_after_three_digits(tmp_path: Path):
    for name in ("002-cpu", "999-h200", "notes"):
        (tmp_path / name).mkdir()
    assert files.next_number(tmp_path) == "1000"
    (tmp_path / "1000-cpu").mkdir()
    assert files.next_number(tmp_path) == "1001"
    ordered = sorted(tmp_path.glob(files.NUMBERED), key=files.number_order)
    assert [path.name for path in ordered] == ["002-cpu", "999-h200", "1000-cpu"]
