"""Signatures of records, by a key of this user outside of the project, and the log of what was signed here.

A digest says that a record is whole; whoever edits the record can renew it. A signature says that it is the record
that this user's key signed. The log in the user's own folder names each record that was signed on this machine, so
that a record that took the place of another one shows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from warpsmith import files
from warpsmith.errors import MachineLacks
from warpsmith.user_state import user_state_folder

SIGNATURE = "record.sig"
"""File of a signature, next to the record: `ed25519`, the public key and the signature, in hexadecimal."""

_SCHEME = "ed25519"


def sign_record(sha256: str) -> str:
    """Return the text of a signature of a record's hash; the first call makes the user's key.

    Raises:
        MachineLacks: the key cannot be read or written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(_read_key()))
    except (OSError, ValueError) as error:
        raise MachineLacks(
            f"The key {_key_path()} cannot be used: {error}; make its folder writable, or remove the key."
        ) from error
    return f"{_SCHEME} {key.public_key().public_bytes_raw().hex()} {key.sign(_message(sha256)).hex()}\n"


def log_record(path: Path, sha256: str) -> None:
    """Add a record to the log of this machine; where the log cannot be written, nothing is added."""
    line = json.dumps({"record": str(path.resolve()), "sha256": sha256})
    try:
        _log_path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.append_line(_log_path(), line)
    except OSError:
        return


def signer_of(text: str, sha256: str) -> str | None:
    """Return the public key of a signature of a record's hash; None if it is no valid one."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        scheme, key, signature = text.split()
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), _message(sha256))
    except (ValueError, InvalidSignature):
        return None
    return key if scheme == _SCHEME else None


def logged_hashes() -> dict[str, str]:
    """Return the hash that was signed last on this machine, by path of the record; torn lines are left out."""
    hashes: dict[str, str] = {}
    try:
        lines = _log_path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        try:
            entry = json.loads(line)
            hashes[str(entry["record"])] = str(entry["sha256"])
        except (ValueError, KeyError, TypeError):
            continue
    return hashes


def replaced_records(hashes: Mapping[Path, str]) -> list[tuple[Path, str]]:
    """List the records that took the place of one that was signed on this machine, each with the fault.

    Args:
        hashes: hash of each record, by its file.
    """
    logged = logged_hashes()
    fault = "is not the record that was signed last on this machine"
    signed = {path: logged.get(str(path)) or logged.get(str(path.resolve())) for path in hashes} if logged else {}
    return [(path, fault) for path, sha256 in signed.items() if sha256 not in (None, hashes[path])]


def _read_key() -> str:
    """Read the private key, or make one that only this user can read."""
    path = _key_path()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_file(path, os.urandom(32).hex())
        path.chmod(0o600)
    return path.read_text(encoding="ascii")


def _key_path() -> Path:
    return user_state_folder() / "signing.key"


def _log_path() -> Path:
    return user_state_folder() / "signed.jsonl"


def _message(sha256: str) -> bytes:
    return f"warpsmith record {sha256}".encode()
