"""Blobs: named by their hash, checked at every read, mended when the content is there again."""

from __future__ import annotations

import pytest

from warpsmith.backups import blobs
from warpsmith.backups.user_files import Content
from warpsmith.errors import CorruptRecord

CONTENT = Content(b"\x00a\r\n", 0o640)


def test_what_is_stored_is_loaded(project):
    state = blobs.store(project, CONTENT)
    assert (state.size, state.mode) == (4, 0o640)
    assert blobs.load(project, state) == CONTENT
    assert blobs.path(project, state).read_bytes() == CONTENT.data


def test_no_file_needs_no_blob(project):
    state = blobs.store(project, Content(None))
    assert blobs.load(project, state) == Content(None)
    assert not blobs.folder(project).exists()


@pytest.mark.parametrize("damage", ["torn", "edited", "gone"])
def test_a_damaged_blob_is_named_and_mended(project, damage):
    state = blobs.store(project, CONTENT)
    path = blobs.path(project, state)
    path.unlink() if damage == "gone" else path.write_bytes(b"" if damage == "torn" else b"\x00b\r\n")
    assert not blobs.sound(project, state)
    with pytest.raises(CorruptRecord, match=rf"{path} (is gone|does not have its hash)"):
        blobs.load(project, state)
    blobs.store(project, CONTENT)
    assert blobs.sound(project, state)
