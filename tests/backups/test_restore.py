"""Restore: the original comes back, what was changed since stays, and nothing is half done or lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpsmith import backups
from warpsmith.backups import blobs, journal, user_files
from warpsmith.errors import CorruptRecord, MachineLacks, Misuse


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))


def blob(project, sha256: str | None) -> bytes:
    return (blobs.blobs_folder(project) / str(sha256)).read_bytes()


@pytest.fixture
def edited(project, script) -> bytes:
    """The script with a sealed edit of line 5; the fixture is its original."""
    before = script.read_bytes()
    backups.open_backups(project, [script], "graphs")
    edit(script, "5", "five")
    backups.seal_backups(project, [script])
    return before


def test_an_edit_that_nobody_sealed_is_taken_back_whole(project, script):
    before = script.read_bytes()
    script.chmod(0o750)
    backups.open_backups(project, [script], "graphs")
    script.write_text("all of it is new")
    script.chmod(0o644)
    (done,) = backups.restore_files(project, [script])
    assert (done.path, done.number, done.label, done.how) == ("train.py", 1, "graphs", "original")
    assert (script.read_bytes(), user_files.read_content(script).mode) == (before, 0o750)
    assert blob(project, done.aside) == b"all of it is new"
    assert backups.standing_backups(project) == ()


def test_a_sealed_edit_is_taken_back(project, script, edited):
    (done,) = backups.restore_files(project, [script])
    assert (done.how, script.read_bytes()) == ("original", edited)
    assert b"five" in blob(project, done.aside)


def test_what_was_changed_elsewhere_since_stays(project, script, edited):
    edit(script, "1", "one")
    (done,) = backups.restore_files(project, [script])
    assert (done.how, script.read_bytes()) == ("merged", edited.replace(b"1\n", b"one\n"))
    assert b"five" in blob(project, done.aside)
    assert b"one" in blob(project, done.aside)


def test_what_was_changed_in_the_same_place_is_shown_and_stays(project, script, edited):
    edit(script, "five", "FIVE")
    with pytest.raises(backups.RestoreConflict, match=r"train\.py: changed since the edit") as told:
        backups.restore_files(project, [script])
    assert (told.value.exit_code, "-five\n+FIVE\n" in told.value.diffs) == (1, True)
    assert b"FIVE" in script.read_bytes()
    assert [b.number for b in backups.standing_backups(project)] == [1]


def test_force_puts_the_original_back_and_keeps_the_change_aside(project, script, edited):
    edit(script, "five", "FIVE")
    (done,) = backups.restore_files(project, [script], force=True)
    assert (done.how, script.read_bytes()) == ("original", edited)
    assert b"FIVE" in blob(project, done.aside)


def test_the_users_mode_stays_unless_forced(project, script, edited):
    script.chmod(0o700)
    backups.open_backups(project, [script])
    edit(script, "7", "seven")
    backups.seal_backups(project, [script])
    script.chmod(0o711)
    backups.restore_files(project, [script])
    assert user_files.read_content(script).mode == 0o711
    backups.restore_files(project, [script], force=True)
    assert (script.read_bytes(), user_files.read_content(script).mode) == (edited, 0o644)


def test_binary_files(project):
    path = project.root / "weights.bin"
    path.write_bytes(bytes(range(256)))
    backups.open_backups(project, [path])
    path.write_bytes(b"\0new")
    backups.seal_backups(project, [path])
    path.write_bytes(b"\0newer")
    with pytest.raises(backups.RestoreConflict) as told:
        backups.restore_files(project, [path])
    assert told.value.diffs
    backups.restore_files(project, [path], force=True)
    assert path.read_bytes() == bytes(range(256))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_file_that_the_edit_made_is_removed(project, sealed):
    path = project.root / "new" / "fused.py"
    backups.open_backups(project, [path])
    path.parent.mkdir()
    path.write_text("made")
    if sealed:
        backups.seal_backups(project, [path])
    (done,) = backups.restore_files(project, [path])
    assert (done.how, path.exists(), blob(project, done.aside)) == ("removed", False, b"made")


@pytest.mark.parametrize("sealed", [False, True])
def test_a_file_that_the_edit_removed_is_made_again(project, script, sealed):
    before = user_files.read_content(script)
    backups.open_backups(project, [script])
    script.unlink()
    if sealed:
        backups.seal_backups(project, [script])
    (done,) = backups.restore_files(project, [script])
    assert (done.how, done.aside, user_files.read_content(script)) == ("original", None, before)


def test_a_folder_that_vanished_is_made_again(project):
    path = project.root / "src" / "step.py"
    path.parent.mkdir()
    path.write_text("step")
    backups.open_backups(project, [path])
    path.unlink()
    path.parent.rmdir()
    backups.restore_files(project, [path])
    assert path.read_text() == "step"


def test_made_or_removed_by_somebody_since_is_a_conflict(project, script, edited):
    new = project.root / "new.py"
    backups.open_backups(project, [new])
    new.write_text("made")
    backups.seal_backups(project, [new])
    new.write_text("made and changed")
    with pytest.raises(backups.RestoreConflict, match=r"new\.py"):
        backups.restore_files(project, [new])
    script.unlink()
    with pytest.raises(backups.RestoreConflict, match=r"new\.py, train\.py") as told:
        backups.restore_files(project, [new, script])
    assert "train.py was removed since the edit" in told.value.diffs
    assert (new.read_text(), script.exists()) == ("made and changed", False)
    backups.restore_files(project, [new, script], force=True)
    assert (new.exists(), script.read_bytes()) == (False, edited)


def test_taken_back_by_hand_already(project, script, edited):
    script.write_bytes(edited)
    (done,) = backups.restore_files(project, [script])
    assert (done.how, done.aside, script.read_bytes()) == ("unchanged", None, edited)
    assert backups.standing_backups(project) == ()


def test_the_last_backup_is_restored_first(project, script):
    texts = [script.read_text(), "first", "second"]
    for text in texts[1:]:
        backups.open_backups(project, [script], text)
        script.write_text(text)
    for text in (texts[1], texts[0]):
        backups.restore_files(project, [script])
        assert script.read_text() == text


def test_an_edit_that_is_kept_outlives_the_restore_of_one_before(project, script, edited):
    backups.open_backups(project, [script], "second")
    edit(script, "8", "eight")
    backups.keep_edits(project, [script])
    assert [done.how for done in backups.restore_files(project, [script])] == ["merged"]
    assert script.read_bytes() == edited.replace(b"8\n", b"eight\n")


def test_several_files_or_none(project, script, edited):
    other = project.root / "other.py"
    other.write_text("other")
    backups.open_backups(project, [other])
    other.write_text("other, edited")
    edit(script, "five", "FIVE")
    held = len(journal.read_journal(project))
    with pytest.raises(backups.RestoreConflict):
        backups.restore_files(project, [other, script])
    assert (other.read_text(), len(journal.read_journal(project))) == ("other, edited", held)


@pytest.mark.parametrize("damage", [b"", b"edited", None], ids=["torn", "edited", "gone"])
def test_a_damaged_blob_restores_nothing(project, script, edited, damage):
    other = project.root / "other.py"
    other.write_text("other")
    backups.open_backups(project, [other])
    other.write_text("other, edited")
    path = blobs.blobs_folder(project) / str(backups.standing_backups(project)[0].original.sha256)
    path.unlink() if damage is None else path.write_bytes(damage)
    now = script.read_bytes()
    for force in (False, True):
        with pytest.raises(CorruptRecord, match="nothing was changed"):
            backups.restore_files(project, [other, script], force)
    assert (script.read_bytes(), other.read_text()) == (now, "other, edited")


def test_a_link_or_a_folder_in_its_place(project, script, edited):
    kept = script.rename(project.root / "moved.py")
    script.symlink_to(kept)
    with pytest.raises(Misuse, match="symbolic link"):
        backups.restore_files(project, [script], force=True)
    script.unlink()
    script.mkdir()
    with pytest.raises(Misuse, match="is a folder"):
        backups.restore_files(project, [script], force=True)
    assert b"five" in kept.read_bytes()


def test_a_folder_that_may_not_be_written(project, script, edited, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(Misuse, match="not writable"):
        backups.restore_files(project, [script])
    assert b"five" in script.read_bytes()


def test_a_write_that_fails_undoes_those_before(project, script, edited, monkeypatch):
    new = project.root / "new.py"
    backups.open_backups(project, [new])
    new.write_text("made")
    real = os.replace

    def full(source: str, place: str) -> None:
        if Path(place) == script:
            raise OSError(28, "No space left on device")
        real(source, place)

    before = {path: user_files.read_content(path) for path in (new, script)}
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MachineLacks, match="No space left on device"):
        backups.restore_files(project, [new, script])
    monkeypatch.undo()
    assert {path: user_files.read_content(path) for path in before} == before
    assert [done.how for done in backups.restore_files(project, [new, script])] == ["removed", "original"]
    assert script.read_bytes() == edited


def test_ctrl_c_undoes_what_was_written(project, script, edited, monkeypatch):
    new, real = project.root / "new.py", user_files.write_content
    backups.open_backups(project, [new])
    new.write_text("made")

    def interrupted(path: Path, content: user_files.Content) -> None:
        real(path, content)
        if path == script and content.data == edited:
            raise KeyboardInterrupt

    before = {path: user_files.read_content(path) for path in (new, script)}
    monkeypatch.setattr(user_files, "write_content", interrupted)
    with pytest.raises(KeyboardInterrupt):
        backups.restore_files(project, [new, script])
    assert {path: user_files.read_content(path) for path in before} == before
    assert len(backups.standing_backups(project)) == 2


def test_somebody_who_is_faster_than_the_check(project, script, edited, monkeypatch):
    first, real = project.root / "a.py", user_files.write_content
    first.write_text("a")
    backups.open_backups(project, [first])
    first.write_text("a, edited")

    def meanwhile(path: Path, content: user_files.Content) -> None:
        real(path, content)
        if path == first and content.data == b"a":
            edit(script, "5", "V")
            edit(script, "five", "V")

    monkeypatch.setattr(user_files, "write_content", meanwhile)
    with pytest.raises(backups.RestoreConflict, match="changed while it was restored"):
        backups.restore_files(project, [first, script])
    assert (first.read_text(), b"V\n" in script.read_bytes()) == ("a, edited", True)


def test_the_mode_is_right_before_the_file_is_in_place(project, script, monkeypatch):
    script.chmod(0o600)
    backups.open_backups(project, [script])
    script.write_text("edited")
    seen, real = [], os.replace

    def look(source: str, place: str) -> None:
        if Path(place) == script:
            seen.append(Path(source).stat().st_mode & 0o777)
        real(source, place)

    monkeypatch.setattr(os, "replace", look)
    backups.restore_files(project, [script])
    assert seen == [0o600]
