"""Manifest of a campaign on disk: sealed by its hash, and restored from git if it is damaged.

Nothing changes a manifest after the campaign has begun. Until a round is closed the seal next to it tells; from
then on the first record does, which is signed. Manifests and records from before that have neither.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.campaign import Manifest
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, MachineLacks, Misuse
from warpsmith.ledger import repair
from warpsmith.ledger.git import Git, campaign_refs
from warpsmith.ledger.store import RECORD, corrupt_file, digest_line, unreadable_file
from warpsmith.project import Project

MANIFEST, SEAL = "manifest.yaml", "manifest.sha256"
"""Names in a campaign's folder. The seal has the format of `sha256sum -c`."""

_IN_RECORD = re.compile(rb'^  "manifest_sha256": "([0-9a-f]{64})"', re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def manifest_files(manifest: Manifest) -> dict[str, str | bytes]:
    """Return the two files of a manifest, by name."""
    text = yaml.safe_dump(manifest.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)
    return {MANIFEST: text, SEAL: digest_line(_sha256(text.encode()), MANIFEST)}


def campaign_folders(project: Project, op: str = "*") -> list[Path]:
    """List the folders of campaigns, of one operator or of all; one that lost its manifest still has its seal."""
    return sorted({path.parent for name in (MANIFEST, SEAL) for path in project.devlog.glob(f"{op}/*/{name}")})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest in a campaign's folder and check its hash.

    Raises:
        CorruptRecord: it is missing, is torn, was edited or does not validate.
    """
    path, command = folder / MANIFEST, f"warpsmith resume --campaign {folder.name}"
    try:
        data, (sha256, witness) = path.read_bytes(), _read_sha256(folder)
    except OSError as error:
        raise unreadable_file(Path(error.filename or path), error, command) from error
    if sha256 and sha256 != _sha256(data):
        raise corrupt_file(path, f"is torn or was edited: it does not match {witness}", command)
    try:
        return _parse_manifest(data, folder)
    except ValueError as error:
        raise corrupt_file(path, f"does not read: {error}", command) from error


def restore_manifest(project: Project, folder: Path) -> Iterator[str]:
    """Restore a manifest that does not read from a commit; yield one sentence for each change. The caller holds
    the campaign.

    The damaged file moves to the quarantine of the rounds. Nothing is done to a manifest that reads.

    Raises:
        CorruptRecord: no commit holds a manifest that fits.
    """
    try:
        read_manifest(folder)
        return
    except CorruptRecord as error:
        commit, data = _find_copy(project, folder)
        if data is None:
            fault = str(error).rsplit("; run", 1)[0]
            raise CorruptRecord(
                f"{fault}, and no commit holds it; put a copy of it back, or move {folder} out of the devlog."
            ) from error
    path = folder / MANIFEST
    if os.path.lexists(path):
        quarantined = repair.free_path(folder / "rounds", "manifest")
        files.move_path(path, quarantined)
        yield f"{MANIFEST} is not as the lab wrote it: moved to {quarantined.relative_to(folder)}"
    files.write_file(folder / SEAL, digest_line(_sha256(data), MANIFEST))
    files.write_file(path, data)
    yield f"restored {MANIFEST} from {commit}"


def _find_copy(project: Project, folder: Path) -> tuple[str, bytes | None]:
    """Find the manifest in git: on the campaign's branch, in HEAD, or among what is staged; None if none fits."""
    git = Git(project.root)
    try:
        (sha256, _), name = _read_sha256(folder), f"{git.path(folder)}/{MANIFEST}"
        for commit in (*campaign_refs(git, folder.name), "HEAD", "the index"):
            result = git.try_run("cat-file", "blob", f"{'' if commit == 'the index' else commit}:{name}")
            if result.returncode == 0 and _fits(result.stdout, folder, sha256):
                return commit, result.stdout
    except (Misuse, MachineLacks):  # the project lies in no checkout, or there is no git
        return "", None
    return "", None


def _fits(data: bytes, folder: Path, sha256: str | None) -> bool:
    try:
        _parse_manifest(data, folder)
    except (ValueError, CorruptRecord):
        return False
    return sha256 in (None, _sha256(data))


def _parse_manifest(data: bytes, folder: Path) -> Manifest:
    """Parse a manifest.

    Raises:
        ValueError: it does not validate.
        CorruptRecord: it belongs to a campaign of another name.
    """
    try:
        manifest = Manifest.model_validate(yaml.load(data.decode(), Loader=_LOADER))
    except (UnicodeDecodeError, yaml.YAMLError, ValidationError, RecursionError) as error:
        raise ValueError(describe_error(error)) from error
    if manifest.campaign != folder.name:
        raise CorruptRecord(
            f"{folder / MANIFEST} belongs to campaign `{manifest.campaign}`; give the folder that name."
        )
    return manifest


def _read_sha256(folder: Path) -> tuple[str | None, str]:
    """Read the hash that a manifest must have, and the name of the file that says so; None if no file does.

    The record is searched as bytes, since parsing it for every campaign of a project takes seconds.
    """
    record = folder / "rounds" / f"{1:03d}" / RECORD
    match = _IN_RECORD.search(record.read_bytes()) if record.is_file() else None
    return (match[1].decode(), record.relative_to(folder).as_posix()) if match else (_read_seal(folder), SEAL)


def _read_seal(folder: Path) -> str | None:
    """Read the hash of the manifest; None without a seal, and for one that is no seal. Raises OSError."""
    path = folder / SEAL
    if not path.exists():
        return None
    words = path.read_text(errors="replace").split()
    return words[0] if words[1:] in ([MANIFEST], [f"*{MANIFEST}"]) and len(words[0]) == 64 else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
