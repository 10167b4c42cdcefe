"""A ledger of small records, as a feature would declare one."""

from __future__ import annotations

from pathlib import Path

from warpsmith.core.base import Model, Sha256
from warpsmith.ledger.store import Ledger

REPAIR = "warpsmith resume --campaign one"


class Note(Model):
    """A record with one text."""

    text: str
    previous_sha256: Sha256 | None = None


class OldNotes(Ledger[Note]):
    """A ledger whose records of `old` have no digest."""

    def predates_digests(self, record: Note) -> bool:
        return record.text.startswith("old")


def note_ledger(folder: Path, kind: type[Ledger[Note]] = Ledger[Note]) -> Ledger[Note]:
    return kind(folder / "rounds", Note, "round", REPAIR)


def add(ledger: Ledger[Note], text: str) -> None:
    """Publish one more record, chained to the last one."""
    ledger.publish(
        ledger.next_number(), Note(text=text, previous_sha256=ledger.last_sha256()), {"file": b"content"}
    )


def texts(ledger: Ledger[Note]) -> list[str]:
    return [stored.record.text for stored in ledger.read_all()]
