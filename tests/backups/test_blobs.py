"""Blobs: named by their hash, checked at every read, mended when the content is there again."""

from __future__ import annotations

import pytest

from warpsmith.backups import blobs
from warpsmith.backups.user_files import Content
from warpsmith.errors import CorruptRecord

CONTENT = Content(b"\x00a\r\n", 0o640)


def test_what_is_stored_is_loaded(project):
    state = blobs.store_blob(project, CONTENT)
    assert (state.size, state.mode) == (4, 0o640)
    assert blobs.load_blob(project, state) == CONTENT
    assert blobs.blob_path(project, state).read_bytes() == CONTENT.data


def test_no_file_needs_no_blob(project):
    state = blobs.store_blob(project, Content(None))
    assert blobs.load_blob(project, state) == Content(None)
    assert not blobs.blobs_folder(project).exists()


@pytest.mark.parametrize("damage", ["torn", "edited", "gone"])
def test_a_damaged_blob_is_named_and_mended(project, damage):
    state = blobs.store_blob(project, CONTENT)
    path = blobs.blob_path(project, state)
    path.unlink() if damage == "gone" else path.write_bytes(b"" if damage == "torn" else b"\x00b\r\n")
    assert not blobs.blob_is_sound(project, state)
    with pytest.raises(CorruptRecord, match=rf"{path} (is missing|does not have its hash)"):
        blobs.load_blob(project, state)
    blobs.store_blob(project, CONTENT)
    assert blobs.blob_is_sound(project, state)
