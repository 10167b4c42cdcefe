"""Repair moves corrupt files away, keeps everything else, and finds nothing to do a second time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_kit import Note, add, note_ledger, texts

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.errors import UnreadableRecord
from warpsmith.ledger import repair
from warpsmith.ledger.store import RECORD, Ledger, write_model


class Part(Model):
    """A part of an open round."""

    text: str


PARTS: dict[str, type[Model]] = {"plan.json": Part, "verdict.json": Part, "lesson.json": Part}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger[Note]:
    """Three records."""
    made = note_ledger(tmp_path)
    for text in ("one", "two", "three"):
        add(made, text)
    return made


def mend(ledger: Ledger[Note]) -> list[str]:
    def actions() -> Iterator[str]:
        yield from repair.sweep_ledger(ledger)
        yield from repair.quarantine_records(ledger)
        yield from repair.acknowledge_missing(ledger)
        yield from repair.drop_unreadable_parts(ledger, PARTS, lambda _, part: part != Part(text="no file"))
        yield from repair.drop_unreadable(ledger, ledger.folder.parent / "final.json", Part)

    return list(actions())


def quarantine(ledger: Ledger[Note]) -> set[str]:
    folder = ledger.folder / "quarantine"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def test_a_sound_ledger_needs_no_repair(ledger: Ledger[Note]) -> None:
    assert mend(ledger) == []


def test_a_corrupt_record_moves_to_the_quarantine_with_its_number(ledger: Ledger[Note]) -> None:
    (ledger.folder_of(3) / RECORD).write_text("{")
    (action,) = mend(ledger)
    assert action.startswith("round 3 is corrupt (")
    assert action.endswith("moved to rounds/quarantine/003-1")
    assert texts(ledger) == ["one", "two"]
    assert ledger.next_number() == 4
    add(ledger, "four")
    assert mend(ledger) == []


def test_a_lost_record_leaves_a_gap(ledger: Ledger[Note]) -> None:
    files.remove_folder(ledger.folder_of(2))
    (action,) = mend(ledger)
    assert "round 2 is missing" in action
    assert texts(ledger) == ["one", "three"]
    assert mend(ledger) == []


def test_unfinished_writes_are_removed(ledger: Ledger[Note]) -> None:
    for folder in (ledger.folder, ledger.folder_of(1)):
        (folder / f"{files.TEMPORARY_PREFIX}stray").write_text("half")
    assert len(mend(ledger)) == 2
    assert mend(ledger) == []
    assert texts(ledger) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("broken", "content", "moved"),
    [
        ("plan.json", "{", {"open-plan-1", "open-verdict-1", "open-lesson-1"}),
        ("verdict.json", '{"text": "no file"}', {"open-verdict-1", "open-lesson-1"}),
        ("lesson.json", "", {"open-lesson-1"}),
    ],
)
def test_a_part_moves_with_those_that_depend_on_it(
    ledger: Ledger[Note], broken: str, content: str, moved: set[str]
) -> None:
    for name in PARTS:
        write_model(ledger.open / name, Part(text=name))
    (ledger.open / broken).write_text(content)
    assert len(mend(ledger)) == len(moved)
    assert quarantine(ledger) == moved
    assert mend(ledger) == []


def test_another_file_that_does_not_read(ledger: Ledger[Note]) -> None:
    path = ledger.folder.parent / "final.json"
    for name in ("open-final-1", "open-final-2"):
        path.write_text("{")
        assert len(mend(ledger)) == 1
        assert name in quarantine(ledger)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ESTALE])
def test_a_record_that_the_machine_cannot_read_now_stays(
    ledger: Ledger[Note], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many open files say nothing about a record, so it is no reason to take it out of the history."""
    path, real = ledger.folder_of(2) / RECORD, Path.read_bytes

    def read_bytes(self: Path) -> bytes:
        if self == path:
            raise OSError(number, os.strerror(number), str(self))
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_bytes)
        with pytest.raises(UnreadableRecord, match=rf"record\.json: {os.strerror(number)}"):
            mend(ledger)
        assert [path for path, _ in ledger.read_sound()[1]] == [path]
    assert quarantine(ledger) == set()
    assert mend(ledger) == []
