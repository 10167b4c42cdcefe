"""Index of closed rounds: it answers again without reading, and never for a file that changed."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_kit import Script, change_manifest

from warpsmith import derived_rows
from warpsmith.campaign.history import index, manifests, past_rounds, records, store
from warpsmith.campaign.history.store import Campaign, Progress
from warpsmith.core.campaign import Strike
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import DIGEST, RECORD
from warpsmith.project import Project


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this moment get rows."""
    monkeypatch.setattr(derived_rows, "_SETTLED_SECONDS", -5)


@pytest.fixture
def rounds(campaign: Campaign) -> Campaign:
    """A campaign of two accepted rounds and one that was rolled back."""
    script = Script({"v1": "ACCEPT", "v2": "ACCEPT", "v3": "ROLLBACK"})
    for _ in range(3):
        script.round(campaign)
    return campaign


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the campaigns whose records were read."""
    names: list[str] = []
    measure = store.measure_progress

    def counted(campaign: Campaign) -> Progress:
        names.append(campaign.name)
        return measure(campaign)

    monkeypatch.setattr(store, "measure_progress", counted)
    return names


def progress(campaign: Campaign) -> Progress | None:
    (made,) = store.read_progress(campaign.project, [campaign.folder])
    return made


def edit(path: Path, change: Callable[[bytes], bytes], *, stat: os.stat_result | None = None) -> None:
    """Edit a file in place, with the times of `stat` afterwards."""
    path.write_bytes(change(path.read_bytes()))
    if stat:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_the_second_answer_reads_no_record(rounds: Campaign, reads: list[str]) -> None:
    first = progress(rounds)
    assert first is not None
    assert first.accepted == {1: "toy/v1", 2: "toy/v2"}
    assert progress(rounds) == first
    assert reads == [rounds.name]


def test_nobody_else_can_write_the_index(
    rounds: Campaign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new"))
    progress(rounds)
    path = derived_rows.rows_path(rounds.project.root)
    assert path.is_file()
    for folder in (path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o077 == 0


def test_a_new_round_is_read(rounds: Campaign, reads: list[str]) -> None:
    progress(rounds)
    Script({"v4": "ACCEPT"}).round(rounds)
    reads.clear()
    made = progress(rounds)
    assert made is not None
    assert (list(made.accepted), reads) == ([1, 2, 4], [rounds.name])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_edit_with_the_old_size_and_time_is_read_again(rounds: Campaign, reads: list[str], number: int) -> None:
    progress(rounds)
    path = rounds.ledger.folder_of(number) / RECORD
    before = path.stat()
    edit(path, lambda data: data.replace(b'"solution": "toy/v', b'"solution": "tox/v'), stat=before)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert progress(rounds) is None  # it does not match its digest
    assert len(reads) == 2


def test_a_record_that_is_moved_into_place_is_read_again(rounds: Campaign, reads: list[str]) -> None:
    progress(rounds)
    path = rounds.ledger.folder_of(3) / RECORD
    before, data = path.stat(), path.read_bytes()
    other = path.with_name("other")
    other.write_bytes(data.replace(b'"ROLLBACK"', b'"ACCEPT"  '))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    assert progress(rounds) is None
    assert len(reads) == 2


def test_a_strike_counts(rounds: Campaign) -> None:
    progress(rounds)
    stored = rounds.closed_rounds()[1]
    strike = Strike(record_sha256=stored.sha256, reason="It reads beyond its input.", at="2026-11-21 10:00")
    records.write_strike(stored, strike)
    made = progress(rounds)
    assert made is not None
    assert list(made.accepted) == [1]
    struck = stored.folder / records.STRUCK
    data, stat = struck.read_bytes(), struck.stat()
    edit(struck, lambda data: data.replace(b"input", b"inqut"), stat=stat)
    assert progress(rounds) is None
    edit(struck, lambda _: data, stat=stat)
    assert progress(rounds) == made
    struck.unlink()
    assert progress(rounds) is None  # the digest still lists it


@pytest.mark.parametrize("change", ["gone", "manifest", "seal", "quarantine"])
def test_what_else_decides_is_seen(rounds: Campaign, reads: list[str], change: str) -> None:
    progress(rounds)
    if change == "gone":
        rounds.ledger.folder_of(3).rename(rounds.rounds / "away")
    elif change == "manifest":
        change_manifest(rounds.folder, "target_op", "target_op")
    elif change == "seal":
        (rounds.folder / manifests.SEAL).touch()
    else:
        (rounds.rounds / "quarantine").mkdir()
    progress(rounds)
    assert len(reads) == 2


def test_a_digest_alone_is_no_other_answer(rounds: Campaign, reads: list[str]) -> None:
    first = progress(rounds)
    digest = rounds.ledger.folder_of(3) / DIGEST
    edit(digest, lambda data: data.upper())
    assert progress(rounds) == first
    assert reads == [rounds.name]
    with pytest.raises(CorruptRecord):
        rounds.closed_rounds()


def test_a_command_looks_at_the_files_once(rounds: Campaign) -> None:
    with index.look_once():
        first = progress(rounds)
        Script({"v4": "ACCEPT"}).round(rounds)
        assert progress(rounds) == first
    made = progress(rounds)
    assert made is not None
    assert list(made.accepted) == [1, 2, 4]


def test_a_campaign_that_is_gone_has_no_progress(rounds: Campaign, tmp_path: Path) -> None:
    progress(rounds)
    rounds.folder.rename(tmp_path / "away")
    assert progress(rounds) is None


def test_a_file_that_just_changed_gets_no_row(
    rounds: Campaign, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derived_rows, "_SETTLED_SECONDS", 3600)
    assert progress(rounds) == progress(rounds)
    assert len(reads) == 2
    assert not derived_rows.rows_path(rounds.project.root).exists()


def test_other_code_reads_again(rounds: Campaign, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    progress(rounds)
    monkeypatch.setattr(derived_rows, "code_state", lambda: "other")
    progress(rounds)
    assert len(reads) == 2


@pytest.mark.parametrize("damage", ["deleted", "no database", "cut", "other layout", "bad value"])
def test_a_damaged_index_costs_time_alone(rounds: Campaign, reads: list[str], damage: str) -> None:
    first, path = progress(rounds), derived_rows.rows_path(rounds.project.root)
    assert path.is_file()
    if damage == "deleted":
        path.unlink()
    elif damage == "no database":
        path.write_text("nothing like it " * 100)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        with sqlite3.connect(path) as connection:
            if damage == "other layout":
                connection.execute("PRAGMA user_version = 99")
            else:
                connection.execute("UPDATE derived SET value = '{}'")
        connection.close()
    assert [progress(rounds) for _ in range(3)] == [first] * 3
    assert len(reads) <= 3  # it is rebuilt by the second call
    assert reads[3:] == []


def test_where_nothing_can_be_written_the_records_answer(
    rounds: Campaign, reads: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert progress(rounds) == progress(rounds)
    assert len(reads) == 2


def test_a_busy_index_is_left_out(rounds: Campaign, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_rows, "_WAIT_SECONDS", 0.05)
    first, path = progress(rounds), derived_rows.rows_path(rounds.project.root)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    assert progress(rounds) == first
    connection.execute("ROLLBACK")
    connection.close()
    assert progress(rounds) == first
    assert len(reads) == 2


def test_writers_at_once_lose_nothing(rounds: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_rows, "_WAIT_SECONDS", 60.0)
    root = rounds.project.root
    rows = [{f"{name}": ("state", "{}")} for name in range(20)]
    threads = [threading.Thread(target=derived_rows.write_rows, args=(root, "kind", row)) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(derived_rows.read_rows(root, "kind")) == len(rows)


def test_past_rounds_are_the_same_from_the_index(rounds: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    first = past_rounds.read_past_rounds(rounds.project)
    assert [past.round for past in first if past.campaign == rounds.name] == [2, 3]
    totals = past_rounds.read_past_totals(rounds.project)
    monkeypatch.setattr(past_rounds, "list_past_rounds", lambda *_: [])
    assert past_rounds.read_past_rounds(rounds.project) == first
    assert past_rounds.read_past_totals(rounds.project) == totals


def test_a_bad_manifest_has_no_progress(rounds: Campaign, project: Project) -> None:
    before = progress(rounds)
    text = f"{'0' * 64}  {manifests.MANIFEST}\n"
    (rounds.folder / manifests.SEAL).write_text(text)
    assert store.read_progress(project, [rounds.folder]) == [before]
    (rounds.folder / manifests.MANIFEST).write_text(text)
    assert store.read_progress(project, [rounds.folder]) == [None]


def test_where_the_state_folder_cannot_be_read_there_is_no_index(
    rounds: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = progress(rounds)

    def refuse(_: Path) -> Path:
        raise PermissionError("Permission denied")

    monkeypatch.setattr(derived_rows, "rows_path", refuse)
    assert progress(rounds) == first


def test_names_that_are_not_utf_8_get_no_row(tmp_path: Path) -> None:
    derived_rows.write_rows(tmp_path, "kind", {"/tmp/\udce9": ("state", "value"), "plain": ("state", "value")})
    assert derived_rows.read_rows(tmp_path, "kind") == {"plain": ("state", "value")}


def test_an_index_with_a_value_that_is_no_text_is_removed(tmp_path: Path) -> None:
    derived_rows.write_rows(tmp_path, "kind", {"plain": ("state", "value")})
    with sqlite3.connect(derived_rows.rows_path(tmp_path)) as connection:
        connection.execute("UPDATE derived SET value = CAST(x'ff' AS TEXT)")
    connection.close()
    assert derived_rows.read_rows(tmp_path, "kind") == {}
    assert not derived_rows.rows_path(tmp_path).exists()
