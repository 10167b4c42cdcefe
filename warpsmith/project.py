"""Locations of the project's folders, and of the files that ship with Warpsmith."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.errors import Misuse

_PACKAGE = Path(__file__).resolve().parent

SHIPPED = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent
"""Root of the files that ship with Warpsmith, laid out as a project: inside the wheel, or this repository."""

_FOLDERS = {"kernels": "kernels", "devlog": "devlog", "knowledge": "docs/knowledge"}
_TABLES = ("project", "contexts")
"""Tables of the configuration that features read: a kernel in place, and other machines."""

MARKER = "warpsmith.toml"
"""File that marks the root of a project; an empty one means all defaults."""

SCRATCH = ".warpsmith"
"""Name of the project's scratch folder."""

_SHAPES = ("devlog/*/*/manifest.yaml", "kernels/*/definition.py")
"""Files below a root by which a project without a marker is known."""


@dataclass(frozen=True)
class Project:
    """Folders of one project; each is created when it is first needed."""

    root: Path
    """Folder that all recorded paths are relative to."""
    kernels: Path
    """Folder of definitions and versions."""
    devlog: Path
    """Folder of campaigns."""
    knowledge: Path
    """Folder of the project's own knowledge, to which LEARN writes."""

    def relative(self, path: Path) -> str:
        """Return `path` as records give it: relative to the root, with slashes."""
        path = Path(os.path.realpath(path))  # which takes a link that leads to itself, as `resolve` does not
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def definition_path(self, op: str) -> Path:
        """Return the path of an operator's definition file."""
        return self.kernels / op / "definition.py"

    @property
    def marked(self) -> bool:
        """True if a file at the root says that it is a project."""
        return _settings(self.root) is not None

    @property
    def scratch(self) -> Path:
        """Folder of durations, profiles' reports, traces and backups, which git does not see."""
        return self.root / SCRATCH

    @property
    def measurements(self) -> Path:
        """Folder in which `warpsmith ceiling` keeps its measurements, one file per machine."""
        return self.knowledge / "hardware" / "measured"

    @property
    def knowledge_layers(self) -> tuple[Path, ...]:
        """Return the project's own knowledge, then the shipped one; a single entry if they are the same."""
        shipped = SHIPPED / "docs" / "knowledge"
        return (self.knowledge,) if self.knowledge == shipped else (self.knowledge, shipped)


def shipped_project() -> Project:
    """Return the project of the operators, records and knowledge that ship with Warpsmith."""
    return Project(SHIPPED, SHIPPED / "kernels", SHIPPED / "devlog", SHIPPED / "docs" / "knowledge")


def find_project(start: Path | None = None) -> Project:
    """Find the project that contains `start` (default: the working folder).

    The root is the nearest folder above with a `warpsmith.toml`, or a `pyproject.toml` with a `[tool.warpsmith]`
    table; else the top of the git checkout; else the nearest folder above that holds a campaign or a definition;
    else `start` itself.

    Raises:
        Misuse: the configuration does not parse, or has an unknown key.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        settings = _settings(folder)
        if settings is not None:
            return _project(folder, settings)
    above = (start, *start.parents)
    tops = [folder for folder in above if (folder / ".git").exists()]
    roots = tops or [folder for folder in above if any(any(folder.glob(shape)) for shape in _SHAPES)]
    return _project(roots[0] if roots else start, {})


def mark_project(project: Project) -> bool:
    """Write the marker into the project's root, so that every folder below finds it; False if it is marked."""
    if _settings(project.root) is not None:
        return False
    files.write_file(project.root / MARKER, "# The root of a Warpsmith project: all defaults.\n")
    return True


def read_settings_table(root: Path, name: str) -> tuple[Path, Any]:
    """Return the file that configures the project at `root`, and one table of it (None if it has none).

    Raises:
        Misuse: the configuration does not parse.
    """
    own = root / MARKER
    return own if own.is_file() else root / "pyproject.toml", (_settings(root) or {}).get(name)


def _project(root: Path, settings: dict[str, Any]) -> Project:
    known_keys = {*_FOLDERS, *_TABLES}
    unknown = sorted(set(settings) - known_keys)
    if unknown:
        raise Misuse(f"{root}: [tool.warpsmith] has unknown keys {unknown}; known: {sorted(known_keys)}.")
    folders = {name: root / str(settings.get(name, default)) for name, default in _FOLDERS.items()}
    return Project(root, **folders)


def _settings(folder: Path) -> dict[str, Any] | None:
    own, shared = folder / MARKER, folder / "pyproject.toml"
    if own.is_file():
        return _read(own)
    if shared.is_file():
        tool = _read(shared).get("tool", {})
        table = tool.get("warpsmith") if isinstance(tool, dict) else None
        if table is not None and not isinstance(table, dict):
            raise Misuse(f"{shared}: `tool.warpsmith` must be a table.")
        return table
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misuse(f"{path} does not parse: {error}; fix the file.") from error
