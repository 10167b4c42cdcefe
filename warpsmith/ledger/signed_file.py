"""Signed file: a file that is no round and is signed as one, in a `.sig` of the same stem next to it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from warpsmith import files
from warpsmith.ledger import signing


def write_signed_file(path: Path, data: bytes) -> None:
    """Write a file in the place of an earlier one, its signature first, and add it to the log of this machine."""
    sha256 = hashlib.sha256(data).hexdigest()
    files.write_file(signature_path(path), signing.sign_record(sha256))
    files.write_file(path, data)
    signing.log_record(path, sha256)


def signature_path(path: Path) -> Path:
    """Return the file of the signature."""
    return path.with_suffix(".sig")


def has_signature(path: Path) -> bool:
    """Return whether the file is what its signature signs, whoever signed it."""
    try:
        text = signature_path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return signing.signer_of(text, files.file_sha256(path)) is not None


def file_signature_fault(path: Path, logged: Mapping[str, str]) -> str | None:
    """Return what is wrong with the signature of a file, None if nothing is.

    Args:
        path: the file, which exists.
        logged: hashes that were signed last on this machine, by path.
    """
    if not has_signature(path):
        return "is not what its signature signs"
    if logged.get(str(path.resolve())) not in (None, files.file_sha256(path)):
        return "is not the record that was signed last on this machine"
    return None
