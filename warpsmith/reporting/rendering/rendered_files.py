"""Rendered files: pages and plots, each rendered again only if what it shows has changed.

The index of rounds has the inputs and the hash of each file as it was written last. A file that is on disk with
that hash, and whose inputs are the same, is left alone. Without the index, everything is rendered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import derived_rows, files
from warpsmith.project import Project

_KIND = "rendered"


def hash_inputs(*inputs: str) -> str:
    """Return a hash over all that a file is rendered from: texts, and the code that renders it."""
    return hashlib.sha256(
        "\0".join((derived_rows.code_state(), *inputs)).encode(errors="surrogateescape")
    ).hexdigest()


@dataclass
class RenderedFiles:
    """Files of one project that are to be on disk as rendering gives them."""

    project: Project
    """The project."""
    _written: dict[str, tuple[str, str]] = field(init=False)
    _due: dict[Path, tuple[str, Callable[[], str | bytes]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._written = derived_rows.read_rows(self.project.root, _KIND)

    def add(self, path: Path, inputs: str, render: Callable[[], str | bytes]) -> None:
        """Add a file that is rendered from these inputs, unless it is on disk as they give it."""
        row = self._written.get(str(path))
        if row is None or row[0] != inputs or not path.is_file() or files.file_sha256(path) != row[1]:
            self._due[path] = (inputs, render)

    def add_content(self, path: Path, content: str | bytes) -> None:
        """Add a file that is rendered already."""
        data = _encode(content)
        self.add(path, hashlib.sha256(data).hexdigest(), lambda: data)

    def write(self) -> list[Path]:
        """Render all files that were added, then write those that differ from what is on disk, and return them."""
        contents = {path: _encode(render()) for path, (_, render) in sorted(self._due.items())}
        changed = [path for path, content in contents.items() if _write_if_changed(path, content)]
        rows = {
            str(path): (self._due[path][0], hashlib.sha256(content).hexdigest())
            for path, content in contents.items()
        }
        derived_rows.write_rows(self.project.root, _KIND, rows)
        self._due.clear()
        return changed


def _encode(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _write_if_changed(path: Path, data: bytes) -> bool:
    if path.is_file() and path.read_bytes() == data:
        return False
    files.write_file(path, data)
    return True
