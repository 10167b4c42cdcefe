"""Ledger: the store of rounds and trials, whose records are numbered, sealed with a digest and chained by hash.

    <folder>/open/          the open round or trial, one file for each finished part
    <folder>/001/           a closed one: record.json, record.sha256, record.sig and the files that belong to it
    <folder>/quarantine/    corrupt records that the repair command moved away; their numbers are not used again

A closed folder appears by one rename, after all of its files are flushed to disk. Each record holds the hash of
the record before it, so an edit of an old record shows even if its digest was renewed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, UnreadableRecord
from warpsmith.ledger import signing
from warpsmith.ledger.signing import SIGNATURE
from warpsmith.system_faults import UNREADABLE_FOR_NOW, describe_os_error

RECORD, DIGEST, OPEN, QUARANTINE = "record.json", "record.sha256", "open", "quarantine"
"""Names in a ledger's folder. The digest has the format of `sha256sum -c`."""


_NUMBER = r"(\d{3}|[1-9]\d{3,})"
"""Pattern of the numbers of rounds and trials: three digits, or more from 1000 on."""


class ChainedRecord(Protocol):
    """A model that holds the hash of the record before it."""

    @property
    def previous_sha256(self) -> str | None:
        """Hash of the record before it; None for the first record."""

    @classmethod
    def model_validate_json(cls, json_data: bytes, /) -> Self:
        """Read the record from its bytes."""

    def model_dump_json(self, *, indent: int | None = None) -> str:
        """Write the record as JSON."""


M = TypeVar("M", bound=Model)
R = TypeVar("R", bound=ChainedRecord)


@dataclass(frozen=True)
class StoredRecord(Generic[R]):
    """A closed record as it is on disk."""

    number: int
    """Number of the round or trial."""
    record: R
    """The record itself."""
    sha256: str
    """Hash of the record's bytes. The next record and the branch refer to the record by it."""
    folder: Path
    """Folder of the round or trial."""
    sealed: bool = True
    """False for a record from a time when its kind had no digest."""

    @property
    def path(self) -> Path:
        """The record's file."""
        return self.folder / RECORD


@dataclass(frozen=True)
class Ledger(Generic[R]):
    """The rounds of one campaign or the trials of one program; everything else is read from its folder."""

    folder: Path
    """Folder of the records."""
    model: type[R]
    """Model of the records."""
    noun: str
    """Name of an item in messages: `round` or `trial`."""
    repair: str
    """Command that repairs the ledger, for error messages."""

    @property
    def open(self) -> Path:
        """Folder of the open round or trial."""
        return self.folder / OPEN

    def folder_of(self, number: int) -> Path:
        """Folder of a closed round or trial."""
        return self.folder / f"{number:03d}"

    def numbers(self) -> list[int]:
        """List the numbers that have a folder, in order."""
        return _folder_numbers(self.folder, _NUMBER)

    def quarantined(self) -> list[int]:
        """List the numbers of the records in quarantine, in order."""
        return _folder_numbers(self.folder / QUARANTINE, rf"{_NUMBER}-\d+")

    def missing(self) -> list[int]:
        """List the numbers up to the last one that have no folder and are not in quarantine."""
        numbers = self.numbers()
        accounted = {*numbers, *self.quarantined()}
        return [number for number in range(1, max(numbers, default=0)) if number not in accounted]

    def next_number(self) -> int:
        """Number that the open round or trial takes when it closes; no number is used twice."""
        return max([*self.numbers(), *self.quarantined()], default=0) + 1

    def read(self, number: int) -> StoredRecord[R]:
        """Read one closed record and check its digest and what the feature adds in `verify`.

        Raises:
            CorruptRecord: it is torn, was edited or does not validate.
        """
        return self._load(self.folder_of(number), number)

    def read_all(self) -> list[StoredRecord[R]]:
        """Read all closed records in order and check the hash chain.

        Raises:
            CorruptRecord: a record is corrupt, is missing, or is not the one that its successor follows.
        """
        records = [self.read(number) for number in self.numbers()]
        for number in self.missing():
            raise self.corrupt(self.folder_of(number), "is missing")
        for record, fault in chain_faults(records):
            raise self.corrupt(record.path, fault)
        return records

    def read_sound(self) -> tuple[list[StoredRecord[R]], list[tuple[Path, CorruptRecord]]]:
        """Read every closed record that is sound, and list the file and the error of each that is not.

        A record that breaks the chain is in both lists.
        """
        records, errors = [], []
        for number in self.numbers():
            try:
                records.append(self.read(number))
            except CorruptRecord as error:
                errors.append((self.folder_of(number) / RECORD, error))
        for number in self.missing():
            folder = self.folder_of(number)
            errors.append((folder / RECORD, self.corrupt(folder, "is missing")))
        errors += [(record.path, self.corrupt(record.path, fault)) for record, fault in chain_faults(records)]
        return records, errors

    def last_sha256(self) -> str | None:
        """Hash that the next record is chained to; None if there is no record. Raises CorruptRecord."""
        records = self.read_all()
        return records[-1].sha256 if records else None

    def encode(self, record: R) -> bytes:
        """Write a record as the bytes of its file."""
        return record.model_dump_json(indent=2).encode() + b"\n"

    def verify(self, stored: StoredRecord[R], attachments: list[str]) -> StoredRecord[R]:
        """Check what the feature knows of a record; return it, completed by its attachments.

        Args:
            stored: a record that matches its digest.
            attachments: words of the digest after the record's own: hash and name of each further file.

        Raises:
            CorruptRecord: the record does not fit its place or its files.
        """
        if attachments:
            raise self.corrupt(stored.path, f"is torn or was edited: it does not match {DIGEST}")
        return stored

    def predates_digests(self, record: R) -> bool:
        """Return whether a record without a digest is from a time when its kind had none."""
        return False

    def publish(self, number: int, record: R, attachments: Mapping[str, bytes]) -> StoredRecord[R]:
        """Make the folder of a closed record appear at once, with its digest and further files."""
        data = self.encode(record)
        sha256 = hashlib.sha256(data).hexdigest()
        seal = {DIGEST: digest_line(sha256, RECORD), SIGNATURE: signing.sign_record(sha256)}
        files.publish_folder({**attachments, **seal, RECORD: data}, self.folder_of(number))
        signing.log_record(self.folder_of(number) / RECORD, sha256)
        return self.read(number)

    def begin(self, contents: Mapping[str, str | bytes]) -> None:
        """Make the open folder appear at once with these files."""
        files.sweep_unfinished(self.folder)
        files.publish_folder(dict(contents), self.open)

    def seal_open(self, record: R) -> None:
        """Write the record and its digest into the open folder; the record's file is the point of no return."""
        data = self.encode(record)
        sha256 = hashlib.sha256(data).hexdigest()
        files.write_file(self.open / SIGNATURE, signing.sign_record(sha256))
        files.write_file(self.open / DIGEST, digest_line(sha256, RECORD))
        files.write_file(self.open / RECORD, data)

    def read_open_record(self) -> StoredRecord[R] | None:
        """Read the record that `seal_open` wrote, None if it has not; raises CorruptRecord."""
        return self._load(self.open, self.next_number()) if (self.open / RECORD).exists() else None

    def close_open(self) -> Path:
        """Give the open folder, which has its record, the next number; return the new folder."""
        folder = self.folder_of(self.next_number())
        files.move_path(self.open, folder)
        signing.log_record(folder / RECORD, files.file_sha256(folder / RECORD))
        return folder

    def drop_open(self) -> None:
        """Remove the open folder in one step, as readers see it."""
        files.remove_folder(self.open)

    def read_model(self, path: Path, model: type[M], repair: str = "") -> M | None:
        """Read a model from a JSON file; None if there is no file.

        Args:
            path: the file.
            model: its model.
            repair: command for the error message; by default the ledger's.

        Raises:
            CorruptRecord: the file does not read.
        """
        try:
            return model.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable_file(path, error, repair or self.repair) from error
        except ValidationError as error:
            fault = f"does not read: {describe_error(error)}"
            raise corrupt_file(path, fault, repair or self.repair) from error

    def signature_faults(self, records: Sequence[StoredRecord[R]]) -> list[tuple[Path, str]]:
        """List the sound records that are not what was signed, each with the fault.

        Records from a time before signatures have none; but a record that follows a signed one has one.
        """
        faults, signed = [], False
        for record in records:
            path, signature = record.path, record.folder / SIGNATURE
            if signature.is_file():
                signed = True
                text = signature.read_text(encoding="ascii", errors="replace")
                if signing.signer_of(text, record.sha256) is None:
                    faults.append((path, f"is not the record that {SIGNATURE} signs"))
            elif signed:
                faults.append((path, f"has no {SIGNATURE}, though a record before it has one"))
        return faults

    def corrupt(self, path: Path, fault: str) -> CorruptRecord:
        """Error about a corrupt file: the file, what is wrong with it, and the command that mends it."""
        return corrupt_file(path, fault, self.repair)

    def _load(self, folder: Path, number: int) -> StoredRecord[R]:
        path = folder / RECORD
        try:
            data = path.read_bytes()
        except OSError as error:
            raise unreadable_file(path, error, self.repair) from error
        attachments = self._read_digest(path, data) if (folder / DIGEST).exists() else None
        try:
            record = self.model.model_validate_json(data)
        except ValidationError as error:
            raise self.corrupt(path, f"does not validate: {describe_error(error)}") from error
        if attachments is None and not self.predates_digests(record):
            raise self.corrupt(path, f"has no {DIGEST} next to it")
        sha256 = hashlib.sha256(data).hexdigest()
        stored = StoredRecord(number, record, sha256, folder, sealed=attachments is not None)
        return self.verify(stored, attachments or [])

    def _read_digest(self, path: Path, data: bytes) -> list[str]:
        """Check the record's bytes against the digest; return the digest's words about further files."""
        try:
            digest = path.with_name(DIGEST).read_text().split()
        except OSError as error:
            raise unreadable_file(path.with_name(DIGEST), error, self.repair) from error
        except UnicodeDecodeError as error:
            raise self.corrupt(path, "has a digest that is no text") from error
        if digest[:2] != [hashlib.sha256(data).hexdigest(), RECORD]:
            raise self.corrupt(path, f"is torn or was edited: it does not match {DIGEST}")
        return digest[2:]


def chain_faults(records: Sequence[StoredRecord[R]]) -> list[tuple[StoredRecord[R], str]]:
    """List the records that break the hash chain, each with the fault; a gap in the numbers is no fault."""
    faults = [
        (record, "follows a record that is not there")
        for record in records[:1]
        if record.number == 1 and record.record.previous_sha256 is not None
    ]
    for earlier, later in pairwise(records):
        if later.number != earlier.number + 1:
            continue
        if later.sealed and later.record.previous_sha256 != earlier.sha256:
            faults.append((earlier, "is not the record that the next one follows"))
        if earlier.sealed and not later.sealed:
            faults.append((later, "has no digest, though the record before it has one"))
    return faults


def corrupt_file(path: Path, fault: str, repair: str) -> CorruptRecord:
    """Error about a corrupt file: the file, what is wrong with it, and the command that mends it."""
    return CorruptRecord(f"{path} {fault}; run `{repair}`.")


def unreadable_file(path: Path, error: OSError, repair: str) -> CorruptRecord:
    """Error about a file that the operating system does not read: an UnreadableRecord if that may be otherwise at
    another time."""
    if error.errno in UNREADABLE_FOR_NOW:
        return UnreadableRecord(str(describe_os_error(error, at=path)))
    return corrupt_file(path, f"does not read: {error.strerror}", repair)


def digest_line(sha256: str, name: str) -> str:
    """One line of a digest file, as `sha256sum -c` reads it."""
    return f"{sha256}  {name}\n"


def write_model(path: Path, model: Model) -> None:
    """Write a model to a JSON file, whole or not at all."""
    files.write_file(path, model.model_dump_json(indent=2) + "\n")


def _folder_numbers(folder: Path, pattern: str) -> list[int]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:  # which knows folders without a look at each
        names = [entry.name for entry in entries if entry.is_dir()]
    return sorted({int(match[1]) for name in names if (match := re.fullmatch(pattern, name))})
