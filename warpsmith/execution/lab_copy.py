"""Copy of the lab for another machine: its files, and one hash over all of them by which it is known there."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

import warpsmith
from warpsmith import files
from warpsmith.execution.archive import pack_files
from warpsmith.execution.contexts import NamedContext
from warpsmith.execution.station import LABS_TO_KEEP
from warpsmith.project import SHIPPED
from warpsmith.user_state import user_state_folder

_PACKAGE = Path(warpsmith.__file__).resolve().parent
_HASHES = TypeAdapter(dict[str, str])
_SHIPPED_PATTERNS = ("docs/knowledge/hardware/*.md", "docs/knowledge/*.yaml", "pyproject.toml")
"""Files besides the package that judging and profiling read."""


class LabCopy:
    """The lab that runs here, as files by their path on the other machine."""

    @cached_property
    def contents(self) -> dict[str, bytes]:
        """Files of the package and what ships with it, without bytecode."""
        root = _PACKAGE.parent
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in _files()} | dict(_metadata())

    @cached_property
    def sha256(self) -> str:
        """Hash of all names and contents, as the other machine computes it too."""
        total = hashlib.sha256()
        for name, content in sorted(self.contents.items()):
            total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
        return total.hexdigest()

    def pack(self) -> bytes:
        """Return the archive that travels."""
        return pack_files(self.contents)


def read_compiled_sha256(entry: NamedContext, lab: LabCopy) -> str:
    """Return the hash of the compiled copy that was brought to a context's machine; empty if none is known."""
    return _read_hashes(_hash_file(entry)).get(lab.sha256, "")


def save_compiled_sha256(entry: NamedContext, lab: LabCopy, sha256: str) -> None:
    """Keep the hash of the compiled copy on this machine, where nothing that runs over there can change it."""
    file = _hash_file(entry)
    others = {name: digest for name, digest in _read_hashes(file).items() if name != lab.sha256}
    latest = [*others.items(), (lab.sha256, sha256)][-LABS_TO_KEEP:]
    files.write_file(file, json.dumps(dict(latest), indent=2) + "\n")


def _hash_file(entry: NamedContext) -> Path:
    """Return the file with the hashes of the labs on a context's machine, the last one that was brought last."""
    context = entry.context
    machine = json.dumps([context.ssh, context.slurm, context.workdir, context.python, context.ssh_config])
    return user_state_folder() / "labs" / f"{hashlib.sha256(machine.encode()).hexdigest()}.json"


def _read_hashes(file: Path) -> dict[str, str]:
    with contextlib.suppress(OSError, ValidationError):
        return _HASHES.validate_json(file.read_bytes())
    return {}


def _files() -> Iterator[Path]:
    shipped = _PACKAGE / "shipped"
    for path in sorted(_PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not path.is_relative_to(shipped):
            yield path
    for pattern in _SHIPPED_PATTERNS:
        yield from (path for path in sorted(SHIPPED.glob(pattern)) if path.is_file())


def _metadata() -> Iterator[tuple[str, bytes]]:
    """Yield the installed package's metadata, which names its requirements where no pyproject.toml does."""
    if (SHIPPED / "pyproject.toml").is_file():
        return
    try:
        package = distribution("warpsmith")
    except PackageNotFoundError:
        return
    yield f"warpsmith-{package.version}.dist-info/METADATA", (package.read_text("METADATA") or "").encode()
