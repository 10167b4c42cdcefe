"""Cases of the red team: `<definition>/<language>/<kind>_<name>` in a folder, each with a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from warpsmith import languages
from warpsmith.core.text import describe_error
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.gate_tests.models import CaseHeader, parse_header
from warpsmith.project import SHIPPED

CORPUS = SHIPPED / "tests" / "redteam"
"""Folder of the cases that ship with Warpsmith."""


@dataclass(frozen=True)
class RedTeamCase:
    """One attack or control in a folder of them."""

    folder: Path
    """Folder with `<definition>/definition.py` and `<definition>/<language>/<file>`."""
    path: Path
    """Path of the source."""
    header: CaseHeader
    """Header of the source."""

    @property
    def definition(self) -> str:
        """Name of the operator."""
        return self.path.parent.parent.name

    @property
    def language(self) -> str:
        """Name of the language."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """Path of the source in the folder, such as `softmax/cpp/attack_hang.cpp`."""
        return self.path.relative_to(self.folder).as_posix()

    @property
    def best(self) -> Path | None:
        """Path of the file that stands for the best version."""
        return self.path.parent / self.header.against if self.header.against else None


def load_cases(folder: Path, patterns: Sequence[str] = ()) -> tuple[RedTeamCase, ...]:
    """Load the cases of a folder whose definition or file name matches one of the patterns; by default all.

    Raises:
        MissingInput: there is no such folder, or nothing matches a pattern.
        Misuse: a header is wrong, or a definition or the version to compare with is missing.
    """
    if not folder.is_dir():
        raise MissingInput(f"{folder} is no folder; candidates lie at <folder>/<definition>/<language>/<file>.")
    folder = folder.resolve()
    cases = [_load_case(folder, path) for path in _list_sources(folder)]
    for pattern in patterns or ("*",):
        if not any(_matches(case, pattern) for case in cases):
            raise MissingInput(f"No candidate in {folder} matches `{pattern}`; list them with `--list`.")
    return tuple(case for case in cases if not patterns or any(_matches(case, each) for each in patterns))


def _list_sources(folder: Path) -> Iterator[Path]:
    suffixes = {name: languages.get(name).suffix for name in languages.names()}
    for path in sorted(folder.glob("*/*/*")):
        if path.suffix == suffixes.get(path.parent.name):
            yield path


def _load_case(folder: Path, path: Path) -> RedTeamCase:
    try:
        case = RedTeamCase(folder, path, parse_header(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise Misuse(f"{path} has no valid header: {describe_error(error)}.") from error
    if not path.name.startswith(f"{case.header.kind}_"):
        raise Misuse(f"{path} is of the kind `{case.header.kind}`; its name must start with that.")
    for needed in (path.parent.parent / "definition.py", case.best):
        if needed and not needed.is_file():
            raise Misuse(f"{path} needs {needed}, which does not exist.")
    return case


def _matches(case: RedTeamCase, pattern: str) -> bool:
    names = (case.definition, case.name, case.path.name, case.path.stem)
    return any(fnmatch(name, pattern) for name in names)
