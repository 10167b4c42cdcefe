"""Contents of a project's evidence: hashes of the files behind campaigns, read anew for each check.

What a check found in a campaign holds while these hashes do; times and sizes of files play no part.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from warpsmith import derived_rows
from warpsmith.campaign.history import manifests
from warpsmith.core.base import Model
from warpsmith.project import Project

_RENDERED = (".md", ".svg")
"""Endings of files that are rendered from records, so that nothing follows from them."""

T = TypeVar("T", bound=Model)


@dataclass(frozen=True)
class ContentHashes:
    """Hashes of the files of a project that its campaigns and their pages depend on."""

    campaigns: Mapping[Path, str]
    """Hash over all files of a campaign that are not rendered, by its folder."""
    operators: Mapping[str, str]
    """Hash over the definition and the versions of an operator, by its name."""
    races: str
    """Hash over the races of all operators."""
    knowledge: str
    """Hash over the names of the pages of knowledge."""

    def state_of(self, folder: Path, *others: str) -> str:
        """Return a hash over all that a result on one campaign follows from; `others` are further inputs."""
        parts = (self.campaigns[folder], self.operators.get(folder.parent.name, ""), self.knowledge, *others)
        return _hash_texts([derived_rows.code_state(), *parts])

    def state(self, *others: str) -> str:
        """Return a hash over all that a result on all campaigns follows from; `others` are further inputs."""
        campaigns = [f"{folder} {digest}" for folder, digest in sorted(self.campaigns.items())]
        operators = [f"{op} {digest}" for op, digest in sorted(self.operators.items())]
        return _hash_texts(
            [derived_rows.code_state(), *campaigns, *operators, self.races, self.knowledge, *others]
        )


def hash_contents(project: Project) -> ContentHashes:
    """Hash the files of a project's campaigns, operators and races."""
    operators = project.kernels.iterdir() if project.kernels.is_dir() else ()
    return ContentHashes(
        campaigns={folder: _hash_folder(folder) for folder in manifests.campaign_folders(project)},
        operators={folder.name: _hash_folder(folder) for folder in operators if folder.is_dir()},
        races=_hash_texts([_hash_folder(folder) for folder in sorted(project.devlog.glob("*/races"))]),
        knowledge=_hash_texts(sorted(project.relative(path) for path in project.knowledge.rglob("*.md"))),
    )


def recall(project: Project, kind: str, states: Mapping[Path, str], model: type[T]) -> dict[Path, T]:
    """Return the results of a kind that the index has for these states, by the folder of the campaign."""
    rows = derived_rows.read_rows(project.root, kind)
    results = {}
    for folder, state in states.items():
        row = rows.get(str(folder))
        if row and row[0] == state:
            try:
                results[folder] = model.model_validate_json(row[1])
            except ValidationError:
                continue
    return results


def remember(project: Project, kind: str, states: Mapping[Path, str], results: Mapping[Path, Model]) -> None:
    """Keep results of a kind with the states that they follow from."""
    rows = {str(folder): (states[folder], result.model_dump_json()) for folder, result in results.items()}
    derived_rows.write_rows(project.root, kind, rows)


def _hash_folder(folder: Path) -> str:
    """Return a hash over names and contents of the files in a folder that are not rendered."""
    total = hashlib.sha256()
    for name in sorted(_list_files(str(folder))):
        total.update(os.fsencode(os.path.relpath(name, folder)) + b"\0")
        try:
            with open(name, "rb") as file:  # noqa: PTH123 - tens of thousands of files
                total.update(hashlib.sha256(file.read()).digest())
        except OSError as error:
            total.update(type(error).__name__.encode())
    return total.hexdigest()


def _list_files(folder: str) -> Iterable[str]:
    entered: set[tuple[int, int]] = set()
    for above, folders, names in os.walk(folder, followlinks=True):
        stat = os.stat(above)  # noqa: PTH116
        if (stat.st_dev, stat.st_ino) in entered:  # a link leads back
            folders.clear()
            continue
        entered.add((stat.st_dev, stat.st_ino))
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (f"{above}/{name}" for name in names if not name.endswith(_RENDERED))


def _hash_texts(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="surrogateescape")).hexdigest()
