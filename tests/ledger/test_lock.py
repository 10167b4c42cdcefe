"""One writer at a time, named to the other; a full disk is told with the command to run after it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from warpsmith.errors import Busy, MachineLacks
from warpsmith.ledger.lock import HOLDER, LOCK, hold_lock


@pytest.mark.parametrize("name", [LOCK, "program.lock"])
def test_the_holder_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with hold_lock(path, "one", "warpsmith judge", "warpsmith resume"):
        assert (tmp_path / (name.removesuffix(LOCK) + HOLDER)).is_file()
        holder = rf"one is held by process {os.getpid()} on .* \(`warpsmith judge`, since "
        with pytest.raises(Busy, match=holder), hold_lock(path, "one", "warpsmith plan", "warpsmith resume"):
            pass
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(HOLDER)] == []
    with hold_lock(path, "one", "warpsmith plan", "warpsmith resume"):
        pass


def test_a_torn_text_about_the_holder_does_not_matter(tmp_path: Path) -> None:
    with hold_lock(tmp_path / LOCK, "one", "warpsmith judge", "warpsmith resume"):
        (tmp_path / HOLDER).write_text("{")
        with (
            pytest.raises(Busy, match="one is held by another process"),
            hold_lock(tmp_path / LOCK, "one", "warpsmith plan", "warpsmith resume"),
        ):
            pass


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOLCK, errno.EMFILE])
def test_a_fault_of_the_disk_is_told_with_the_repair(tmp_path: Path, code: int) -> None:
    with (
        pytest.raises(MachineLacks, match=rf"{os.strerror(code)}; nothing was lost: .*, then run `warpsmith res"),
        hold_lock(tmp_path / LOCK, "one", "warpsmith judge", "warpsmith resume"),
    ):
        raise OSError(code, os.strerror(code))


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), hold_lock(tmp_path / LOCK, "one", "read", "warpsmith resume"):
        Path("/nowhere/at/all").read_text()
