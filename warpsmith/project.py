"""Where things are: the project at hand, and what ships with Warpsmith."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.errors import Misuse

_PACKAGE = Path(__file__).resolve().parent

SHIPPED = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent
"""Root of what ships with Warpsmith, laid out as a project: inside the wheel, or this repository."""

_FOLDERS = {"kernels": "kernels", "devlog": "devlog", "knowledge": "docs/knowledge"}
_CONTRACT = "project"


@dataclass(frozen=True)
class Project:
    """The folders of one project; they are made on first need."""

    root: Path
    """The folder that all recorded paths are relative to."""
    kernels: Path
    """Definitions and every version."""
    devlog: Path
    """Campaigns."""
    knowledge: Path
    """The project's own knowledge, where LEARN writes."""

    def relative(self, path: Path) -> str:
        """`path` as records give it: relative to the root, with slashes."""
        path = path.resolve()
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def definition(self, op: str) -> Path:
        """The definition's file of an operator."""
        return self.kernels / op / "definition.py"

    @property
    def measurements(self) -> Path:
        """Where `warpsmith ceiling` keeps what it found, one file a machine."""
        return self.knowledge / "hardware" / "measured"

    @property
    def knowledge_layers(self) -> tuple[Path, ...]:
        """The project's own knowledge first, then what ships; one where they are the same."""
        shipped = SHIPPED / "docs" / "knowledge"
        return (self.knowledge,) if self.knowledge == shipped else (self.knowledge, shipped)


def find_project(start: Path | None = None) -> Project:
    """The project that `start` (default: the working folder) lies in.

    The root is the nearest folder above with a `warpsmith.toml`, or a `pyproject.toml` with a
    `[tool.warpsmith]` table; else the git checkout's top; else `start` itself.

    Raises:
        Misuse: the configuration does not parse, or holds an unknown key.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        settings = _settings(folder)
        if settings is not None:
            return _project(folder, settings)
    tops = [folder for folder in (start, *start.parents) if (folder / ".git").exists()]
    return _project(tops[0] if tops else start, {})


def read_kernel_settings(root: Path) -> tuple[Path, Any]:
    """The file that configures the project at `root`, and its table on a kernel in place; None: it has none.

    Raises:
        Misuse: the configuration does not parse.
    """
    own = root / "warpsmith.toml"
    return own if own.is_file() else root / "pyproject.toml", (_settings(root) or {}).get(_CONTRACT)


def _project(root: Path, settings: dict[str, Any]) -> Project:
    known = {*_FOLDERS, _CONTRACT}
    unknown = sorted(set(settings) - known)
    if unknown:
        raise Misuse(f"{root}: [tool.warpsmith] has unknown keys {unknown}; known: {sorted(known)}.")
    folders = {name: root / str(settings.get(name, place)) for name, place in _FOLDERS.items()}
    return Project(root, **folders)


def _settings(folder: Path) -> dict[str, Any] | None:
    own, shared = folder / "warpsmith.toml", folder / "pyproject.toml"
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
        raise Misuse(f"{path} does not parse: {error}; mend it.") from error
