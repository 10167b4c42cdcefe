"""Compiled objects on disk: found by key, refused when damaged, limited in size, never the reason of a failure."""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import pytest

from warpsmith.languages.shared import object_store
from warpsmith.languages.shared.object_store import ObjectStore, file_stamp, tree_stamps


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects", ".o")


def test_an_object_is_found_by_its_key(store: ObjectStore):
    assert store.load("key", Path.read_bytes) is None
    store.write("key", b"code")
    store.write("other", b"another")
    assert store.load("key", Path.read_bytes) == b"code"
    assert store.load("ke", Path.read_bytes) is None


@pytest.mark.parametrize("content", [b"cod", b"", b"codf"], ids=["cut short", "empty", "changed"])
def test_a_damaged_object_is_deleted(store: ObjectStore, content: bytes):
    store.write("key", b"code")
    (path,) = store.folder.iterdir()
    path.write_bytes(content)
    assert store.load("key", Path.read_bytes) is None
    assert not path.exists()


def test_an_object_that_does_not_load_is_deleted_and_the_next_one_is_taken(store: ObjectStore):
    for content in (b"good", b"bad"):
        store.write("key", content)

    def load(path: Path) -> bytes:
        if path.read_bytes() == b"bad":
            raise RuntimeError("not an object")
        return path.read_bytes()

    assert store.load("key", load) == b"good"
    assert store.load("key", Path.read_bytes) == b"good"


def test_the_objects_that_were_read_longest_ago_are_deleted(store: ObjectStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_store, "MAX_BYTES", 10)
    for number, key in enumerate("ab"):
        store.write(key, f"{key}345".encode())
        digest = hashlib.sha256(f"{key}345".encode()).hexdigest()
        os.utime(store.folder / f"{key}.{digest}.o", (number, number))
    assert store.load("a", Path.read_bytes)  # so that `b` is older
    store.write("c", b"c345")
    assert [store.load(key, Path.read_bytes) is not None for key in "abc"] == [True, False, True]


def test_a_folder_that_cannot_be_read_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / ("x" * 300)):
        assert ObjectStore(folder, ".o").load("key", Path.read_bytes) is None


def test_failures_are_logged(caplog: pytest.LogCaptureFixture):
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with caplog.at_level(logging.INFO, "warpsmith"):
        assert object_store.log_failure(fail) is None
    assert "No space left" in caplog.text


def test_stamps_change_with_size_and_time(tmp_path: Path):
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "a.h"
    path.write_text("1")
    os.utime(path, (1, 1))
    before = file_stamp(path)
    assert list(tree_stamps(tmp_path)) == [before]
    os.utime(path, (2, 2))
    assert file_stamp(path) != before
    path.write_text("12")
    os.utime(path, (1, 1))
    assert file_stamp(path) != before
