"""The records of a campaign's closed rounds: read, verified against digests, snapshots and the hash chain."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.campaign import RoundRecord, Strike
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord

RECORD, DIGEST, QUARANTINE = "record.json", "record.sha256", "quarantine"
"""The record, the checksums as `sha256sum -c` takes them, and where corrupt rounds are moved."""

STRUCK = "struck.json"
"""Beside the record: why its version left the lineage later. Its checksum follows the record's."""


@dataclass(frozen=True)
class Kept:
    """A round's record as it stands on disk."""

    record: RoundRecord
    """The record."""
    sha256: str
    """Hash of its bytes: what the next record and the lineage name it by."""
    folder: Path
    """The round's folder."""


def folder_of(rounds: Path, number: int) -> Path:
    """The folder of a round."""
    return rounds / f"{number:03d}"


def numbers(rounds: Path) -> list[int]:
    """Numbers of the rounds that have a folder, in order."""
    return _numbers(rounds, r"(\d{3})")


def quarantined(rounds: Path) -> list[int]:
    """Numbers of the rounds that were moved away as corrupt; a number is never given twice."""
    return _numbers(rounds / QUARANTINE, r"(\d{3})-\d+")


def next_number(rounds: Path) -> int:
    """The number that the open round takes when it closes."""
    return max([*numbers(rounds), *quarantined(rounds)], default=0) + 1


def contents(record: RoundRecord, snapshot: bytes, others: dict[str, bytes]) -> dict[str, str | bytes]:
    """The files of a round's folder."""
    data = record.model_dump_json(indent=2, exclude={"struck"}).encode() + b"\n"
    digest = _line(hashlib.sha256(data).hexdigest(), RECORD)
    return {**others, record.snapshot: snapshot, DIGEST: digest, RECORD: data}


def keep_strike(kept: Kept, strike: Strike) -> None:
    """Write why a round's version left the lineage, then its checksum: from then on its loss shows."""
    files.write(kept.folder / STRUCK, strike.model_dump_json(indent=2) + "\n")
    seal_strike(kept)


def seal_strike(kept: Kept) -> bool:
    """Put the checksum of a round's strike after the record's; False where that is done, or nothing struck it."""
    strike, digest = kept.folder / STRUCK, kept.folder / DIGEST
    if not strike.exists():
        return False
    text = _line(kept.sha256, RECORD) + _line(files.sha256(strike), STRUCK)
    if digest.read_text() == text:
        return False
    files.write(digest, text)
    return True


def read(rounds: Path, number: int, campaign: str) -> Kept:
    """One round's record with its digest, number, snapshot and strike checked.

    Raises:
        CorruptRecord: it is torn, edited, does not validate, or its snapshot is not the one judged.
    """
    folder = folder_of(rounds, number)
    record, sha256, sealed = _checked(folder / RECORD, campaign)
    if (record.campaign, record.round) != (campaign, number):
        raise corrupt(folder / RECORD, f"says it is round {record.round} of {record.campaign}", campaign)
    if not sound_snapshot(folder / record.snapshot, record.snapshot_sha256):
        raise corrupt(folder / record.snapshot, "is not the file that the round judged", campaign)
    return Kept(record.model_copy(update={"struck": _strike(folder, sha256, sealed, campaign)}), sha256, folder)


def read_all(rounds: Path, campaign: str) -> list[Kept]:
    """All records in order, the hash chain checked.

    Raises:
        CorruptRecord: one is corrupt, missing, or not the one that its successor names.
    """
    kept = [read(rounds, number, campaign) for number in numbers(rounds)]
    for number in missing(rounds):
        raise corrupt(folder_of(rounds, number), "is missing", campaign)
    for broken in unlinked(kept):
        raise corrupt(broken.folder / RECORD, "is not the record that the next one follows", campaign)
    return kept


def missing(rounds: Path) -> list[int]:
    """Numbers that are neither there nor in quarantine."""
    there = numbers(rounds)
    known = {*there, *quarantined(rounds)}
    return [number for number in range(1, max(there, default=0)) if number not in known]


def unlinked(kept: Sequence[Kept]) -> list[Kept]:
    """Records that differ from what their successor was chained to; a gap in the numbers is no link."""
    first = [k for k in kept[:1] if k.record.round == 1 and k.record.previous_sha256 is not None]
    return first + [
        earlier
        for earlier, later in pairwise(kept)
        if later.record.round == earlier.record.round + 1 and later.record.previous_sha256 != earlier.sha256
    ]


def best(records: Iterable[RoundRecord]) -> RoundRecord | None:
    """The last round whose version joined the lineage and was not struck since."""
    accepted = [record for record in records if record.verdict.accepted]
    return accepted[-1] if accepted else None


def sound_snapshot(path: Path, sha256: str) -> bool:
    """Whether a snapshot is there with the right content."""
    return path.is_file() and files.sha256(path) == sha256


def corrupt(path: Path, what: str, campaign: str) -> CorruptRecord:
    """The one sentence about a corrupt file."""
    return CorruptRecord(f"{path} {what}; run `warpsmith resume --campaign {campaign}`.")


def _checked(path: Path, campaign: str) -> tuple[RoundRecord, str, list[str]]:
    """A record, its hash, and the line of the digest about its strike, in words; empty where there is none."""
    try:
        data = path.read_bytes()
        digest = path.with_name(DIGEST).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise corrupt(path, f"or its digest is unreadable ({type(error).__name__})", campaign) from error
    sha256 = hashlib.sha256(data).hexdigest()
    if digest[:2] != [sha256, RECORD]:
        raise corrupt(path, f"is torn or was edited: it does not match {DIGEST}", campaign)
    try:
        return RoundRecord.model_validate_json(data), sha256, digest[2:]
    except ValidationError as error:
        raise corrupt(path, f"does not validate: {problem(error)}", campaign) from error


def _strike(folder: Path, sha256: str, sealed: list[str], campaign: str) -> Strike | None:
    path = folder / STRUCK
    try:
        data = path.read_bytes()
        strike = Strike.model_validate_json(data)
    except FileNotFoundError:
        if sealed:
            raise corrupt(path, f"is missing, though {DIGEST} tells of a strike", campaign) from None
        return None
    except (OSError, ValidationError) as error:
        what = problem(error) if isinstance(error, ValidationError) else str(error)
        raise corrupt(path, f"does not read: {what}", campaign) from error
    if strike.record_sha256 != sha256:
        raise corrupt(path, "strikes another record than the one beside it", campaign)
    if sealed and sealed != [hashlib.sha256(data).hexdigest(), STRUCK]:
        raise corrupt(path, f"was edited: it does not match {DIGEST}", campaign)
    return strike


def _line(sha256: str, name: str) -> str:
    return f"{sha256}  {name}\n"


def _numbers(folder: Path, pattern: str) -> list[int]:
    names = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return sorted({int(match[1]) for name in names if (match := re.fullmatch(pattern, name))})
