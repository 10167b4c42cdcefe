"""Addresses in the site: of each thing, and of each file of the project that has a page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import relpath
from types import MappingProxyType
from urllib.parse import quote, unquote

from warpsmith import project as projects
from warpsmith.project import Project
from warpsmith.site.citation import Archive, Citation
from warpsmith.site.markdown import Surroundings

FRONT, KNOWLEDGE, SYMPTOMS = "index.html", "knowledge/index.html", "knowledge/symptoms.html"
HARDWARE, TRUST, CAMPAIGNS = "hardware.html", "trust.html", "campaigns.html"


def operator_address(op: str) -> str:
    """Return the path of an operator's page."""
    return f"operators/{file_name(op)}.html"


def version_address(op: str, solution: str) -> str:
    """Return the path of the page with a version's source."""
    return f"operators/{file_name(op)}/{file_name(solution.replace('/', '-'))}.html"


def campaign_address(name: str) -> str:
    """Return the path of a campaign's page."""
    return f"campaigns/{file_name(name)}.html"


def program_address(name: str) -> str:
    """Return the path of a program's page."""
    return f"programs/{file_name(name)}.html"


def repository_address(name: str) -> str:
    """Return the path of the page of a kernel in its own repository."""
    return f"repositories/{file_name(name)}.html"


def rank_campaign_address(op: str, target: str, ranks: int) -> str:
    """Return the path of the page of an operator over ranks."""
    return f"ranks/{file_name(op)}-{file_name(target)}-{ranks}.html"


def entry_address(id: str) -> str:
    """Return the path of a knowledge entry's page."""
    return f"knowledge/{file_name(id)}.html"


def symptom_address(id: str) -> str:
    """Return the path of the page of a symptom that the classifier detects."""
    return f"knowledge/symptom-{file_name(id)}.html"


def chip_address(id: str) -> str:
    """Return the path of a device's page."""
    return f"hardware/{file_name(id)}.html"


def round_anchor(campaign: str, number: int) -> str:
    """Return the anchor of a round on the pages that describe it."""
    return f"{campaign}-{number:03d}"


def file_name(name: str) -> str:
    """Return a name without characters that mean something in an address; a changed one ends with a hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    return plain if plain == name and not plain.startswith(".") else f"{plain.lstrip('.')}-{_short_hash(name)}"


def way(page: str, address: str) -> str:
    """Return the way from a page to an address; an anchor stays."""
    path, _, anchor = address.partition("#")
    start = str(PurePosixPath(page).parent)
    return quote(relpath(path, start)) + (f"#{quote(anchor)}" if anchor else "")


@dataclass
class SiteMap:
    """Pages of the site by the files that they show."""

    project: Project
    """The project."""
    archive: Archive
    """The records that pages cite."""
    files: dict[Path, str] = field(default_factory=dict)
    """Address by file."""
    knowledge: dict[str, str] = field(default_factory=dict)
    """Address by path in a knowledge folder, whichever layer it is in."""
    is_single_file: bool = False
    """True for a report that is one file: its links lead to no other page and no record."""

    def add_knowledge(self, path: Path, address: str) -> None:
        """Add a page of one of the knowledge folders."""
        for layer in self.project.knowledge_layers:
            if path.resolve().is_relative_to(layer.resolve()):
                self.knowledge.setdefault(path.resolve().relative_to(layer.resolve()).as_posix(), address)

    def find(self, file: Path) -> str | None:
        """Return the address of the page on a file; None if the site does not show it."""
        file = file.resolve()
        if address := self.files.get(file):
            return address
        for layer in self.project.knowledge_layers:
            if file.is_relative_to(layer.resolve()):
                address = self.knowledge.get(file.relative_to(layer.resolve()).as_posix())
                if address:
                    return address
        return None

    def surroundings(
        self,
        page: str,
        folder: Path,
        source: Citation | None = None,
        raise_headings: int = 0,
        numbered: Mapping[int, Citation] = MappingProxyType({}),
        prefix: str = "",
    ) -> Surroundings:
        """Return the surroundings of a text of Markdown in a folder, on a page of the site."""
        resolve, find = self._resolver(page, folder), self._finder(folder)
        return Surroundings(resolve, find, source, raise_headings, numbered, prefix)

    def _resolver(self, page: str, folder: Path) -> Callable[[str], str | None]:
        def resolve(href: str) -> str | None:
            if self.is_single_file:
                return None
            address = self.find(folder / href)
            if address is None and (citation := self._finder(folder)(href)):
                address = citation.address
            return way(page, address) if address else None

        return resolve

    def _finder(self, folder: Path) -> Callable[[str], Citation | None]:
        def find(name: str) -> Citation | None:
            candidate = (folder / unquote(name)).resolve()
            for owner in (self.project, projects.shipped_project()):
                root = owner.root.resolve()
                if candidate.is_relative_to(root) and (
                    citation := self.archive.find(str(candidate.relative_to(root)))
                ):
                    return citation
            return self.archive.find(unquote(name))

        return find


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
