"""Records are sealed, chained and published whole; every way to damage them ends in the same kind of error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_kit import REPAIR, Note, OldNotes, add, note_ledger, texts

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.errors import CorruptRecord
from warpsmith.ledger.store import DIGEST, RECORD, Ledger, digest_line


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger[Note]:
    """Three records."""
    made = note_ledger(tmp_path)
    for text in ("one", "two", "three"):
        add(made, text)
    return made


def reseal(path: Path) -> None:
    path.with_name(DIGEST).write_text(digest_line(files.file_sha256(path), RECORD))


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("two", "TWO"))


def edit_and_reseal(path: Path) -> None:
    edit(path)
    reseal(path)


def forget_the_link(path: Path) -> None:
    path.write_text(json.dumps({"text": "two", "previous_sha256": None}))
    reseal(path)


def test_records_are_read_in_order(ledger: Ledger[Note]) -> None:
    assert texts(ledger) == ["one", "two", "three"]
    assert ledger.numbers() == [1, 2, 3]
    assert ledger.next_number() == 4
    first, second, _ = ledger.read_all()
    assert (first.record.previous_sha256, second.record.previous_sha256) == (None, first.sha256)
    assert (first.folder / "file").read_bytes() == b"content"
    assert all(stored.sealed for stored in (first, second))


def test_sha256sum_checks_a_record(ledger: Ledger[Note]) -> None:
    command = ("sha256sum", "--check", "--strict", DIGEST)
    assert subprocess.run(command, cwd=ledger.folder_of(2), capture_output=True).returncode == 0


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "edited": (edit, "does not match record.sha256"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:9]), "does not match record.sha256"),
    "removed": (Path.unlink, "does not read: No such file"),
    "digest removed": (lambda path: path.with_name(DIGEST).unlink(), "has no record.sha256"),
    "digest of any bytes": (lambda path: path.with_name(DIGEST).write_bytes(b"\xff"), "digest that is no text"),
    "digest of more files": (
        lambda path: path.with_name(DIGEST).write_text(path.with_name(DIGEST).read_text() * 2),
        "does not match record.sha256",
    ),
    "edited and sealed again": (edit_and_reseal, "is not the record that the next one follows"),
    "unlinked and sealed again": (forget_the_link, "is not the record that the next one follows"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_record_is_refused(ledger: Ledger[Note], name: str) -> None:
    damage, fault = DAMAGE[name]
    damage(ledger.folder_of(2) / RECORD)
    with pytest.raises(CorruptRecord) as caught:
        ledger.read_all()
    message = str(caught.value)
    assert message.startswith(str(ledger.folder))
    assert fault in message
    assert message.endswith(f"; run `{REPAIR}`.")
    sound, errors = ledger.read_sound()
    assert [stored.number for stored in sound if stored.number != 2] == [1, 3]
    assert str(errors[0][1]) == message


def test_a_record_that_is_gone_is_missed(ledger: Ledger[Note]) -> None:
    files.remove_folder(ledger.folder_of(2))
    with pytest.raises(CorruptRecord, match="002 is missing"):
        ledger.read_all()
    assert ledger.missing() == [2]


def test_a_first_record_that_follows_another_is_refused(tmp_path: Path) -> None:
    ledger = note_ledger(tmp_path)
    ledger.publish(1, Note(text="one", previous_sha256="0" * 64), {})
    with pytest.raises(CorruptRecord, match="follows a record that is not there"):
        ledger.read_all()


def test_a_number_is_not_published_twice(ledger: Ledger[Note]) -> None:
    with pytest.raises(FileExistsError):
        ledger.publish(3, Note(text="again"), {})
    assert texts(ledger) == ["one", "two", "three"]


def write_old(ledger: Ledger[Note], number: int) -> None:
    files.publish_folder({RECORD: ledger.encode(Note(text=f"old {number}"))}, ledger.folder_of(number))


def test_records_from_before_digests_are_read_and_chained_to(tmp_path: Path) -> None:
    ledger = note_ledger(tmp_path, OldNotes)
    write_old(ledger, 1)
    write_old(ledger, 2)
    add(ledger, "new")
    assert texts(ledger) == ["old 1", "old 2", "new"]
    assert [stored.sealed for stored in ledger.read_all()] == [False, False, True]
    path = ledger.folder_of(2) / RECORD
    path.write_text(path.read_text().replace("old 2", "old two"))
    with pytest.raises(CorruptRecord, match=r"002/record.json is not the record"):
        ledger.read_all()


def test_no_record_loses_its_digest_by_calling_itself_old(tmp_path: Path) -> None:
    ledger = note_ledger(tmp_path, OldNotes)
    write_old(ledger, 1)
    add(ledger, "new")
    write_old(ledger, 3)
    with pytest.raises(CorruptRecord, match=r"003/record.json has no digest"):
        ledger.read_all()


def test_an_open_folder_is_sealed_and_takes_its_number(tmp_path: Path) -> None:
    ledger = note_ledger(tmp_path)
    add(ledger, "one")
    ledger.begin({"plan.json": "{}", "before-0": b"code"})
    assert ledger.read_open_record() is None
    ledger.seal_open(Note(text="two", previous_sha256=ledger.last_sha256()))
    opened = ledger.read_open_record()
    assert opened is not None
    assert (opened.record.text, opened.number) == ("two", 2)
    assert ledger.close_open() == ledger.folder_of(2)
    assert texts(ledger) == ["one", "two"]
    assert (ledger.folder_of(2) / "before-0").read_bytes() == b"code"
    assert not ledger.open.exists()


def test_an_edited_open_record_is_refused(tmp_path: Path) -> None:
    ledger = note_ledger(tmp_path)
    ledger.begin({"plan.json": "{}"})
    ledger.seal_open(Note(text="two"))
    edit(ledger.open / RECORD)
    with pytest.raises(CorruptRecord, match=r"open/record\.json is torn or was edited"):
        ledger.read_open_record()


def test_a_part_that_does_not_read_is_named_with_its_command(tmp_path: Path) -> None:
    class Part(Model):
        text: str

    ledger, path = note_ledger(tmp_path), tmp_path / "part.json"
    assert ledger.read_model(path, Part) is None
    path.write_text("{")
    with pytest.raises(CorruptRecord, match=rf"part\.json does not read: .*; run `{REPAIR}`\."):
        ledger.read_model(path, Part)
    with pytest.raises(CorruptRecord, match=r"; run `git restore part`\."):
        ledger.read_model(path, Part, "git restore part")


def test_the_thousandth_record_follows_the_999th(ledger: Ledger[Note]) -> None:
    for number in range(4, 1000):  # acknowledged as lost, so that the test is short
        (ledger.folder / "quarantine" / f"{number:03d}-1").mkdir(parents=True)
    for text in ("thousand", "one more"):
        add(ledger, text)
    assert [path.name for path in sorted(ledger.folder.glob("1*"))] == ["1000", "1001"]
    assert ledger.numbers() == [1, 2, 3, 1000, 1001]
    assert texts(ledger)[-2:] == ["thousand", "one more"]
    assert ledger.next_number() == 1002
    (ledger.folder / "0042").mkdir()  # a user's own
    assert 42 not in ledger.numbers()
    path = ledger.folder_of(1000) / RECORD
    path.write_text(path.read_text().replace("thousand", "thousands"))
    reseal(path)
    with pytest.raises(CorruptRecord, match="1000"):
        ledger.read_all()
