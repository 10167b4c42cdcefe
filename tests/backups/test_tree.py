"""The user's files: names, what is refused, and how a file is put."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from warpsmith.backups import user_files
from warpsmith.backups.user_files import Content
from warpsmith.errors import Misuse


def test_names_are_relative_inside_and_absolute_outside(project, tmp_path):
    assert user_files.journal_name(project, project.root / "a" / ".." / "b.py") == "b.py"
    assert user_files.journal_name(project, tmp_path / "else.py") == f"{tmp_path}/else.py"
    for path in (project.root / "a" / "b.py", tmp_path / "else.py"):
        assert user_files.resolve_name(project, user_files.journal_name(project, path)) == path


def test_a_name_is_the_same_through_a_linked_folder(project):
    (project.root / "src").mkdir()
    (project.root / "link").symlink_to("src")
    assert user_files.journal_name(project, project.root / "link" / "a.py") == "src/a.py"


def test_a_name_that_no_record_can_hold(project):
    with pytest.raises(Misuse, match="not UTF-8"):
        user_files.journal_name(project, project.root / os.fsdecode(b"\xff.py"))


def test_links_in_a_circle(project):
    (project.root / "a").symlink_to("b")
    (project.root / "b").symlink_to("a")
    with pytest.raises(Misuse, match="cannot be"):
        user_files.read_content(
            user_files.resolve_name(project, user_files.journal_name(project, project.root / "a" / "x.py"))
        )


def test_the_backups_themselves(project):
    with pytest.raises(Misuse, match="part of the backups"):
        user_files.journal_name(project, user_files.backups_folder(project) / "journal" / "0001-backup.json")


def test_what_is_there_and_what_is_not(project, script):
    script.chmod(0o750)
    assert user_files.read_content(script) == Content(script.read_bytes(), 0o750)
    assert user_files.read_content(project.root / "no" / "such.py") == Content(None)


def test_a_folder_a_link_and_a_socket_are_refused(project, script):
    link, pipe = project.root / "link.py", project.root / "pipe"
    link.symlink_to(script)
    os.mkfifo(pipe)
    with pytest.raises(Misuse, match="is a folder"):
        user_files.read_content(project.root)
    with pytest.raises(Misuse, match=r"symbolic link to .*train\.py; name the file itself"):
        user_files.read_content(link)
    with pytest.raises(Misuse, match="not a regular file"):
        user_files.read_content(pipe)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(project.root / "s"))
        with pytest.raises(Misuse, match="not a regular file"):
            user_files.read_content(project.root / "s")


def test_a_path_through_a_file(script):
    with pytest.raises(Misuse, match="cannot be read: Not a directory"):
        user_files.read_content(script / "x.py")
    with pytest.raises(Misuse, match="is not a folder"):
        user_files.require_writable(script / "x.py")


def test_a_large_file(script):
    with script.open("r+b") as file:
        file.truncate(user_files.LARGEST_BYTES + 1)
    with pytest.raises(Misuse, match="has 64 MiB; backups take files up to 64 MiB"):
        user_files.read_content(script)


def test_a_folder_that_takes_no_files(script, monkeypatch):
    user_files.require_writable(script)
    user_files.require_writable(script.parent / "new" / "deeper" / "x.py")
    monkeypatch.setattr(os, "access", lambda path, mode: path != script.parent)
    for path in (script, script.parent / "new" / "deeper" / "x.py"):
        with pytest.raises(Misuse, match="not writable"):
            user_files.require_writable(path)


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444])
def test_put_gives_bytes_and_mode(script, mode):
    user_files.write_content(script, Content(b"\x00\r\n", mode))
    assert user_files.read_content(script) == Content(b"\x00\r\n", mode)


def test_put_makes_folders_and_removes_files(project):
    path = project.root / "gone" / "deeper" / "x.py"
    user_files.write_content(path, Content(b"x", 0o644))
    assert path.read_bytes() == b"x"
    user_files.write_content(path, Content(None))
    user_files.write_content(path, Content(None))
    assert list(path.parent.iterdir()) == []


def test_put_leaves_nothing_behind_where_it_fails(script, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = user_files.read_content(script)
    monkeypatch.setattr(Path, "chmod", full)
    with pytest.raises(OSError, match="No space"):
        user_files.write_content(script, Content(b"new", 0o644))
    assert user_files.read_content(script) == before
    assert {path.name for path in script.parent.iterdir()} == {"train.py", "warpsmith.toml"}


def test_put_sweeps_what_a_killed_one_left_and_no_more(script):
    ours, theirs = script.with_name(".tmp-.tmp-warpsmith-train.py-1-ab"), script.with_name(".tmp-train.py-1-ab")
    for stray in (ours, theirs):
        stray.write_text("")
    user_files.write_content(script, Content(b"new", 0o644))
    assert (ours.exists(), theirs.exists()) == (False, True)
