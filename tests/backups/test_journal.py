"""The journal: numbered without gaps, each edit of it noticed, one writer at a time."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest

from warpsmith import backups, files
from warpsmith.backups import journal, user_files
from warpsmith.errors import Busy, CorruptRecord, MachineLacks


def actions(project) -> list[str]:
    return [path.name for path in sorted(journal.journal_folder(project).iterdir())]


def test_an_action_is_a_file_of_its_own(project, script):
    backups.open_backups(project, [script], "graphs")
    backups.seal_backups(project, [script])
    backups.keep_edits(project, [script])
    assert actions(project) == ["0001-backup.json", "0002-seal.json", "0003-keep.json"]
    assert [action.label for action in journal.read_journal(project)] == ["graphs", "", ""]


def test_reading_makes_nothing(project):
    assert backups.standing_backups(project) == ()
    assert not user_files.backups_folder(project).exists()


def test_it_is_private(project, script):
    backups.open_backups(project, [script])
    assert user_files.backups_folder(project).stat().st_mode & 0o777 == 0o700


def test_git_leaves_it_alone(project, script):
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
        done = subprocess.run(
            ("git", *who, *arguments), cwd=project.root, capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "all")
    backups.open_backups(project, [script])
    script.write_text("edited")
    git("stash", "--include-untracked")
    git("clean", "-fd")
    assert git("status", "--porcelain") == ""
    assert [one.sound for one in backups.list_backups(project)] == [True]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "cannot be read"),
        (lambda path: path.write_text(path.read_text().replace("graphs", "scarfs")), "was edited"),
        (lambda path: path.unlink(), "is not number 1"),
        (lambda path: path.rename(path.with_name("0001-keep.json")), "is not number 1"),
    ],
    ids=["torn", "edited", "missing", "renamed"],
)
def test_damage_stops_every_action(project, script, damage, told):
    backups.open_backups(project, [script], "graphs")
    backups.open_backups(project, [script])
    damage(journal.journal_folder(project) / "0001-backup.json")
    before = actions(project)
    for act in (backups.restore_files, backups.keep_edits, backups.open_backups, backups.seal_backups):
        with pytest.raises(CorruptRecord, match=told):
            act(project, [script])
    with pytest.raises(CorruptRecord, match=told):
        backups.standing_backups(project)
    assert actions(project) == before


def test_numbers_above_four_digits_stay_in_order(project, script, monkeypatch):
    monkeypatch.setattr(journal, "_name", lambda action: f"{action.number:01d}-{action.action}.json")
    for _ in range(11):
        backups.open_backups(project, [script])
    assert [action.number for action in journal.read_journal(project)] == list(range(1, 12))


def test_strays_of_a_killed_process_are_swept(project, script):
    backups.open_backups(project, [script])
    stray = journal.journal_folder(project) / f"{files.TEMPORARY_PREFIX}0002-seal.json-1-ab"
    stray.write_text("{")
    backups.seal_backups(project, [script])
    assert not stray.exists()


def test_processes_at_once_lose_nothing(project):
    children = []
    for k in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for n in range(5):
                    path = project.root / f"{k}.py"
                    path.write_text(f"{k} {n}")
                    backups.open_backups(project, [path], f"{k} {n}")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    made = journal.read_journal(project)
    assert sorted(action.label for action in made) == [f"{k} {n}" for k in range(4) for n in range(5)]
    assert len(backups.standing_backups(project)) == 20


def test_another_process_that_holds_on(project, script, monkeypatch):
    monkeypatch.setattr(journal, "LOCK_SECONDS", 0.05)
    held, done = threading.Event(), threading.Event()

    def holder() -> None:
        with journal.lock_backups(project):
            held.set()
            done.wait(10)

    thread = threading.Thread(target=holder)
    thread.start()
    held.wait(10)
    try:
        with pytest.raises(Busy, match="Another process has held"):
            backups.open_backups(project, [script])
    finally:
        done.set()
        thread.join()
    assert backups.standing_backups(project) == ()


def test_a_full_disk_is_one_sentence(project, script, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineLacks, match="No space left on device; nothing was lost: make room"):
        backups.open_backups(project, [script])
    assert backups.standing_backups(project) == ()


def test_a_state_folder_that_cannot_be_made(project, script):
    (project.root / ".warpsmith").write_text("a file")
    with pytest.raises(MachineLacks, match=r"\.warpsmith: File exists; nothing was lost: move what lies"):
        backups.open_backups(project, [script])


def test_an_action_of_another_version_of_the_schema_is_named(project, script):
    backups.open_backups(project, [script])
    path = journal.journal_folder(project) / "0001-backup.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"further": 1}))
    with pytest.raises(CorruptRecord, match=r"0001-backup\.json cannot be read: .*further"):
        backups.standing_backups(project)
