"""The red team's candidates: `<definition>/<language>/<kind>_<name>` in a folder, each with a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from warpsmith import languages
from warpsmith.core.problem import problem
from warpsmith.errors import MissingInput, Misuse
from warpsmith.lab.gate_tests.models import Header, header
from warpsmith.project import SHIPPED

CORPUS = SHIPPED / "tests" / "redteam"
"""The candidates that ship with Warpsmith."""


@dataclass(frozen=True)
class Case:
    """One candidate of a folder of them."""

    folder: Path
    """The folder: `<definition>/definition.py` and `<definition>/<language>/<file>` lie in it."""
    path: Path
    """Its file."""
    header: Header
    """What it says of itself."""

    @property
    def definition(self) -> str:
        """The operator."""
        return self.path.parent.parent.name

    @property
    def language(self) -> str:
        """What it is written in."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """Its file in the folder: `softmax/cpp/attack_hang.cpp`."""
        return self.path.relative_to(self.folder).as_posix()

    @property
    def best(self) -> Path | None:
        """The file that plays the best version so far."""
        return self.path.parent / self.header.against if self.header.against else None


def load(folder: Path, patterns: Sequence[str] = ()) -> tuple[Case, ...]:
    """The candidates of a folder whose definition or file name matches one of the patterns; none: all.

    Raises:
        MissingInput: there is no such folder, or nothing matches a pattern.
        Misuse: a header is wrong, a definition or the version to compare with is not there.
    """
    if not folder.is_dir():
        raise MissingInput(f"{folder} is no folder; candidates lie at <folder>/<definition>/<language>/<file>.")
    folder = folder.resolve()
    found = [_case(folder, path) for path in _sources(folder)]
    for pattern in patterns or ("*",):
        if not any(_matches(case, pattern) for case in found):
            raise MissingInput(f"No candidate in {folder} matches `{pattern}`; `--list` shows what there is.")
    return tuple(case for case in found if not patterns or any(_matches(case, each) for each in patterns))


def _sources(folder: Path) -> Iterator[Path]:
    suffixes = {name: languages.get(name).suffix for name in languages.names()}
    for path in sorted(folder.glob("*/*/*")):
        if path.suffix == suffixes.get(path.parent.name):
            yield path


def _case(folder: Path, path: Path) -> Case:
    try:
        found = Case(folder, path, header(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise Misuse(f"{path} has no valid header: {problem(error)}.") from error
    if not path.name.startswith(f"{found.header.kind}_"):
        raise Misuse(f"{path} is of the kind `{found.header.kind}`; its name must start with that.")
    for needed in (path.parent.parent / "definition.py", found.best):
        if needed and not needed.is_file():
            raise Misuse(f"{path} needs {needed}, which is not there.")
    return found


def _matches(case: Case, pattern: str) -> bool:
    names = (case.definition, case.name, case.path.name, case.path.stem)
    return any(fnmatch(name, pattern) for name in names)
