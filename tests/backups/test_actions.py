"""Backups are opened, sealed, kept, listed and pruned; what is refused changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith import backups
from warpsmith.backups import blobs, journal, user_files
from warpsmith.errors import CorruptRecord, MissingInput, Misuse


def blob_names(project) -> set[str]:
    return {path.name for path in blobs.blobs_folder(project).iterdir()}


def test_open_names_what_it_took(project, script, tmp_path):
    outside, new = tmp_path / "else.py", project.root / "new.py"
    outside.write_bytes(b"\x00\xff")
    made = backups.open_backups(project, [script, outside, new, script], "graphs")
    assert [(b.path, b.number, b.label) for b in made] == [
        ("train.py", 1, "graphs"), (str(outside), 1, "graphs"), ("new.py", 1, "graphs"),
    ]  # fmt: skip
    assert [b.original.sha256 is None for b in made] == [False, False, True]
    assert all(b.sealed is None for b in made)
    assert backups.standing_backups(project) == made


def test_one_bad_file_and_none_is_backed_up(project, script):
    with pytest.raises(Misuse, match="is a folder"):
        backups.open_backups(project, [script, project.root])
    with pytest.raises(Misuse, match="No file is named"):
        backups.open_backups(project, [])
    assert backups.standing_backups(project) == ()
    assert not journal.journal_folder(project).exists()


def test_a_file_that_could_not_be_put_back(project, script, monkeypatch):
    monkeypatch.setattr(user_files.os, "access", lambda *_: False)
    with pytest.raises(Misuse, match=r"not writable, so train\.py could not be restored"):
        backups.open_backups(project, [script])
    assert backups.standing_backups(project) == ()


def test_seal_says_what_the_edit_left(project, script):
    (made,) = backups.open_backups(project, [script])
    script.write_text("edited")
    (sealed,) = backups.seal_backups(project, [script])
    assert sealed == made.model_copy(update={"sealed": user_files.read_content(script).state})
    script.write_text("edited again")
    assert backups.seal_backups(project, [script])[0].sealed == user_files.read_content(script).state


def test_a_further_backup_seals_the_one_below(project, script):
    backups.open_backups(project, [script], "first")
    script.write_text("edited")
    backups.open_backups(project, [script], "second")
    below, top = backups.standing_backups(project)
    assert (below.sealed, top.sealed) == (top.original, None)


@pytest.mark.parametrize("act", [backups.seal_backups, backups.keep_edits, backups.restore_files])
def test_what_has_no_backup(project, script, act):
    other = project.root / "other.py"
    backups.open_backups(project, [script])
    with pytest.raises(MissingInput, match=r"other\.py: no backup stands in .*project; `warpsmith backups`"):
        act(project, [script, other])
    assert len(journal.read_journal(project)) == 1


def test_keep_drops_the_newest_and_no_byte(project, script):
    (first,) = backups.open_backups(project, [script])
    script.write_text("edited")
    (second,) = backups.open_backups(project, [script])
    script.write_text("edited again")
    held = blob_names(project)
    assert backups.keep_edits(project, [script]) == (second,)
    assert [b.number for b in backups.standing_backups(project)] == [first.number]
    backups.keep_edits(project, [script])
    assert backups.standing_backups(project) == ()
    assert (script.read_text(), blob_names(project)) == ("edited again", held)


def test_the_original_is_the_newest_backups(project, script):
    before = script.read_bytes()
    backups.open_backups(project, [script])
    script.write_text("edited")
    assert backups.original_blob(project, script).read_bytes() == before
    backups.open_backups(project, [script])
    assert backups.original_blob(project, script).read_bytes() == b"edited"


def test_an_original_that_is_not_there(project, script):
    new = project.root / "new.py"
    with pytest.raises(MissingInput, match="no backup stands"):
        backups.original_blob(project, new)
    backups.open_backups(project, [new, script])
    with pytest.raises(MissingInput, match="did not exist when its backup 0001"):
        backups.original_blob(project, new)
    backups.original_blob(project, script).write_text("torn")
    with pytest.raises(CorruptRecord, match="incomplete or was edited"):
        backups.original_blob(project, script)


def test_the_list_sees_the_file_as_it_is(project, script):
    def now() -> str:
        return backups.list_backups(project)[0].now

    backups.open_backups(project, [script])
    assert now() == "original"
    script.write_text("edited")
    assert now() == "edited"
    backups.seal_backups(project, [script])
    assert now() == "edited"
    script.write_text("edited by hand")
    assert now() == "changed"
    script.unlink()
    assert now() == "missing"
    script.mkdir()
    assert now() == "changed"


def test_the_list_checks_the_blobs(project, script, tmp_path):
    (made,) = backups.open_backups(project, [script])
    script.write_text("edited")
    (sealed,) = backups.seal_backups(project, [script])
    for state in (made.original, sealed.sealed):
        path = blobs.blob_path(project, state)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        assert [one.sound for one in backups.list_backups(project)] == [False]
        path.write_bytes(whole)
    assert [one.sound for one in backups.list_backups(project)] == [True]


def test_what_is_aside_is_listed_and_pruned(project, script):
    before = user_files.read_content(script).state.sha256
    backups.open_backups(project, [script])
    script.write_text("edited")
    edited = user_files.read_content(script).state.sha256
    backups.restore_files(project, [script])
    (standing,) = backups.open_backups(project, [script])
    assert [(one.path, one.sha256) for one in backups.list_asides(project)] == [("train.py", edited)]
    assert backups.prune_blobs(project) == 1
    assert (backups.list_asides(project), backups.prune_blobs(project)) == ((), 0)
    assert (blob_names(project), standing.original.sha256) == ({before}, before)


def test_pruning_spares_what_a_merge_needs(project, script):
    backups.open_backups(project, [script])
    script.write_text(script.read_text().replace("1\n", "one\n"))
    backups.seal_backups(project, [script])
    assert backups.prune_blobs(project) == 0
    script.write_text(script.read_text().replace("8\n", "eight\n"))
    assert [done.how for done in backups.restore_files(project, [script])] == ["merged"]


def test_a_project_that_moved(project, script, tmp_path):
    from warpsmith import project as projects

    before = script.read_bytes()
    backups.open_backups(project, [script])
    script.write_text("edited")
    moved = projects.find_project(project.root.rename(tmp_path / "moved"))
    backups.restore_files(moved, [Path(moved.root / "train.py")])
    assert (moved.root / "train.py").read_bytes() == before
