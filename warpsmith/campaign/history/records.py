"""Ledger of a campaign's rounds: further checks of a round's record, and strikes of closed rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.campaign import Manifest, RoundRecord, Strike
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.text import describe_error
from warpsmith.errors import MissingInput
from warpsmith.ledger.store import (
    DIGEST,
    RECORD,
    Ledger,
    StoredRecord,
    digest_line,
    unreadable_file,
    write_model,
)

STRUCK = "struck.json"
"""File next to the record: why its version left the lineage later. Its checksum follows the record's."""

StoredRound: TypeAlias = StoredRecord[RoundRecord]
"""A closed round of a campaign as it is on disk."""


@dataclass(frozen=True)
class RoundLedger(Ledger[RoundRecord]):
    """The rounds of one campaign."""

    campaign: str
    """Name of the campaign, which its records repeat."""

    def encode(self, record: RoundRecord) -> bytes:
        """Write a record as the bytes of its file, without the strike, which has a file of its own."""
        return record.model_dump_json(indent=2, exclude={"struck"}).encode() + b"\n"

    def verify(self, stored: StoredRound, attachments: list[str]) -> StoredRound:
        """Check campaign, number, snapshot and strike of a record; return it with its strike.

        Raises:
            CorruptRecord: one of them does not fit.
        """
        record = stored.record
        if (record.campaign, record.round) != (self.campaign, stored.number):
            raise self.corrupt(stored.path, f"says that it is round {record.round} of {record.campaign}")
        snapshot = stored.folder / record.snapshot
        if snapshot.exists() and not has_content(snapshot, record.snapshot_sha256):
            raise self.corrupt(snapshot, "is not the file that the round judged")
        strike = self._read_strike(stored, attachments)
        return replace(stored, record=record.model_copy(update={"struck": strike}))

    def _read_strike(self, stored: StoredRound, attachments: list[str]) -> Strike | None:
        path = stored.folder / STRUCK
        try:
            data = path.read_bytes()
            strike = Strike.model_validate_json(data)
        except FileNotFoundError:
            if attachments:
                raise self.corrupt(path, f"is missing, though {DIGEST} lists it") from None
            return None
        except OSError as error:
            raise unreadable_file(path, error, self.repair) from error
        except ValidationError as error:
            raise self.corrupt(path, f"does not read: {describe_error(error)}") from error
        if strike.record_sha256 != stored.sha256:
            raise self.corrupt(path, "strikes another record than the one next to it")
        if attachments and attachments != [hashlib.sha256(data).hexdigest(), STRUCK]:
            raise self.corrupt(path, f"was edited: it does not match {DIGEST}")
        return strike


def round_ledger(folder: Path, campaign: str) -> RoundLedger:
    """Ledger of a campaign's rounds in a folder."""
    return RoundLedger(folder, RoundRecord, "round", f"warpsmith resume --campaign {campaign}", campaign)


def judged_file(stored: StoredRound, versions: Path) -> Path:
    """Return the version as the round judged it: its snapshot, or its own file if that has not changed.

    Git does not track snapshots, so a clone has the version's file alone.

    Args:
        stored: the closed round.
        versions: folder of the operator's versions, `<kernels>/<op>`.

    Raises:
        MissingInput: there is no snapshot, and the version's file has changed or is gone.
    """
    record = stored.record
    version = version_file(record, versions)
    for path in (stored.folder / record.snapshot, version):
        if has_content(path, record.snapshot_sha256):
            return path
    raise MissingInput(
        f"{version} is not the file that round {record.round} judged; restore it, for example from git."
    )


def version_file(record: RoundRecord, versions: Path) -> Path:
    """Return the file of a round's version, which may have changed since; `versions` is `<kernels>/<op>`."""
    return (versions / record.solution).with_suffix(Path(record.snapshot).suffix)


def write_strike(stored: StoredRound, strike: Strike) -> None:
    """Write why a round's version left the lineage, then its checksum, so that a loss of the file shows."""
    write_model(stored.folder / STRUCK, strike)
    seal_strike(stored)


def seal_strike(stored: StoredRound) -> bool:
    """Add the checksum of a round's strike to the digest; return False if there is nothing to add."""
    strike, digest = stored.folder / STRUCK, stored.folder / DIGEST
    if not strike.exists():
        return False
    text = digest_line(stored.sha256, RECORD) + digest_line(files.file_sha256(strike), STRUCK)
    if digest.read_text() == text:
        return False
    files.write_file(digest, text)
    return True


def best_round(rounds: Iterable[RoundRecord]) -> RoundRecord | None:
    """The last round whose version the campaign goes on from and that was not struck since; None if there is none.

    In a port campaign that is the last version that passed: nothing is known of its speed.
    """
    standing = [record for record in rounds if record.verdict.stands]
    return standing[-1] if standing else None


def misplaced_verdict(manifest: Manifest, evaluation: Evaluation) -> str | None:
    """Say why a verdict cannot be one of a campaign: only port campaigns have UNTIMED ones, and they accept
    nothing; None if it can."""
    verdict = evaluation.decision.verdict
    if manifest.port and verdict.accepted:
        return f"is a port campaign, which times nothing, and has the verdict {verdict}"
    if not manifest.port and evaluation.port is not None:
        return "is no port campaign, and has a verdict on a version that no device ran"
    return None


def has_content(path: Path, sha256: str) -> bool:
    """Return whether a file is there and has this hash."""
    return path.is_file() and files.file_sha256(path) == sha256
