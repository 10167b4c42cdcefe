"""Places: the address in the site of each thing, and of each file of the project that has a page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import relpath
from urllib.parse import quote, unquote

from warpsmith.project import Project
from warpsmith.site.citation import Archive, Citation
from warpsmith.site.markdown import Surroundings

FRONT, KNOWLEDGE, SYMPTOMS = "index.html", "knowledge/index.html", "knowledge/symptoms.html"
HARDWARE, TRUST, CAMPAIGNS = "hardware.html", "trust.html", "campaigns.html"


def operator_place(op: str) -> str:
    """Return the path of an operator's page."""
    return f"operators/{file_name(op)}.html"


def version_place(op: str, solution: str) -> str:
    """Return the path of the page with a version's source."""
    return f"operators/{file_name(op)}/{file_name(solution.replace('/', '-'))}.html"


def campaign_place(name: str) -> str:
    """Return the path of a campaign's page."""
    return f"campaigns/{file_name(name)}.html"


def program_place(name: str) -> str:
    """Return the path of a program's page."""
    return f"programs/{file_name(name)}.html"


def repository_place(name: str) -> str:
    """Return the path of the page of a kernel in its own repository."""
    return f"repositories/{file_name(name)}.html"


def entry_place(id: str) -> str:
    """Return the path of a knowledge entry's page."""
    return f"knowledge/{file_name(id)}.html"


def symptom_place(id: str) -> str:
    """Return the path of the page of a symptom that the classifier detects."""
    return f"knowledge/symptom-{file_name(id)}.html"


def chip_place(id: str) -> str:
    """Return the path of a device's page."""
    return f"hardware/{file_name(id)}.html"


def round_anchor(campaign: str, number: int) -> str:
    """Return the anchor of a round on the pages that describe it."""
    return f"{campaign}-{number:03d}"


def file_name(name: str) -> str:
    """Return a name without characters that mean something in an address; a changed one ends with a hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return plain if plain == name and not plain.startswith(".") else f"{plain.lstrip('.')}-{_short_hash(name)}"


def way(page: str, place: str) -> str:
    """Return the address of a place, relative to a page; an anchor stays."""
    path, _, anchor = place.partition("#")
    start = str(PurePosixPath(page).parent)
    return quote(relpath(path, start)) + (f"#{quote(anchor)}" if anchor else "")


@dataclass
class Places:
    """Pages of the site by the files that they show."""

    project: Project
    """The project."""
    archive: Archive
    """The records that pages cite."""
    files: dict[Path, str] = field(default_factory=dict)
    """Place by file."""
    knowledge: dict[str, str] = field(default_factory=dict)
    """Place by path in a knowledge folder, whichever layer it is in."""

    def add_knowledge(self, path: Path, place: str) -> None:
        """Add a page of one of the knowledge folders."""
        for layer in self.project.knowledge_layers:
            if path.resolve().is_relative_to(layer.resolve()):
                self.knowledge.setdefault(path.resolve().relative_to(layer.resolve()).as_posix(), place)

    def find(self, file: Path) -> str | None:
        """Return the place of a file; None if the site does not show it."""
        file = file.resolve()
        if place := self.files.get(file):
            return place
        for layer in self.project.knowledge_layers:
            if file.is_relative_to(layer.resolve()):
                place = self.knowledge.get(file.relative_to(layer.resolve()).as_posix())
                if place:
                    return place
        return None

    def surroundings(
        self, page: str, folder: Path, source: Citation | None = None, raise_headings: int = 0
    ) -> Surroundings:
        """Return what a text of Markdown in a folder stands in, on a page of the site."""
        return Surroundings(self._resolver(page, folder), self._finder(folder), source, raise_headings)

    def _resolver(self, page: str, folder: Path) -> Callable[[str], str | None]:
        def resolve(href: str) -> str | None:
            place = self.find(folder / href)
            if place is None and (citation := self._finder(folder)(href)):
                place = citation.copy
            return way(page, place) if place else None

        return resolve

    def _finder(self, folder: Path) -> Callable[[str], Citation | None]:
        def find(name: str) -> Citation | None:
            name = unquote(name)
            for root in (folder, *((self.project.root,) if folder != self.project.root else ())):
                beside = (root / name).resolve()
                if beside.is_relative_to(self.project.root.resolve()):
                    citation = self.archive.find(beside.relative_to(self.project.root.resolve()).as_posix())
                    if citation:
                        return citation
            return self.archive.find(name)

        return find


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
