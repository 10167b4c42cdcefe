"""Citations: the record behind each figure, by path, hash and place in the record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_url

from warpsmith import project as projects
from warpsmith.core.evaluation import Aggregate, Comparison
from warpsmith.project import Project
from warpsmith.reporting import format
from warpsmith.site.markup import Html, element

RECORDS = "records"
"""Folder of the site with a copy of each cited record."""

RECORD_PAGE = "record.html"
"""Page that shows the copy of the record that its anchor names."""

SHIPPED = "shipped"
"""Folder in it for records that ship with Warpsmith and are not the project's own."""

RECORD_FOLDERS = ("benchmarks/records", ".warpsmith/verdicts", ".warpsmith/redteam", ".warpsmith/aa")
"""Folders below a project's root that hold records, beside its devlog and its knowledge."""

_DIGITS = 12
"""Digits of a hash by which a figure names its record: the table of its page and `site.json` have the rest."""


@dataclass(frozen=True)
class Citation:
    """A record that figures come from."""

    path: str
    """Path of the record, relative to its project."""
    sha256: str
    """Hash of the record's file."""
    copy: str
    """Path of the record's copy in the site, without the suffix of its packed form."""

    def quote(self, document: object, *keys: str | int) -> Quote:
        """Return one value of the record; `keys` lead to it from the record's model.

        A value that is absent on the way is None.
        """
        value: Any = document
        for key in keys:
            if value is None:
                break
            is_item = isinstance(key, int) or isinstance(value, dict)
            value = value[key] if is_item else getattr(value, str(key))
        return Quote(value, self, "".join(f"/{key}" for key in keys))

    def derive(self, value: object, rule: str = "") -> Quote:
        """Return a value that was computed from the record; `rule` names the computation."""
        return Quote(value, self, "", rule)

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of an element that shows a figure of the record."""
        return {"data_sha256": self.digits}

    @property
    def digits(self) -> str:
        """First digits of the hash, by which figures name the record; the table of a page has its path."""
        return self.sha256[:_DIGITS]

    @property
    def address(self) -> str:
        """Address in the site at which a reader sees the copy."""
        return f"{RECORD_PAGE}#{self.copy}"

    @property
    def url(self) -> str:
        """Address of the copy, quoted, relative to the root of the site."""
        return f"{RECORD_PAGE}#{quote_url(self.copy)}"


@dataclass(frozen=True)
class Quote:
    """A value with the record that it comes from; pages show measured values in no other form."""

    value: Any
    """The value; None if the record has none."""
    citation: Citation
    """The record."""
    pointer: str
    """Place in the record, as a JSON pointer; empty if the value was computed from the record."""
    rule: str = ""
    """Name of the computation; empty if the value stands in the record."""
    others: tuple[Citation, ...] = ()
    """Further records that the value was computed from."""

    @property
    def number(self) -> float | int | str | None:
        """The value, or the speedup of a comparison."""
        return self.value.speedup if isinstance(self.value, Aggregate | Comparison) else self.value

    @property
    def attributes(self) -> dict[str, object]:
        """Attributes of an element that shows the value."""
        pointer = self.pointer
        if pointer and isinstance(self.value, Aggregate | Comparison):
            pointer = f"{pointer}/speedup"
        exact = self.number if pointer else None
        records = (self.citation, *self.others)
        return {
            "data_sha256": " ".join(citation.digits for citation in records),
            "data_at": pointer or None,
            "data_rule": self.rule or None,
            "value": None if exact is None else Html(repr(exact) if isinstance(exact, float) else str(exact)),
        }

    def show(self, formatter: Callable[[Any], str]) -> Html:
        """Return the formatted value as an element with its record, or the mark of an absent value."""
        if self.value is None:
            return Html(format.ABSENT)
        return element("data", str(formatter(self.value)), **self.attributes)


def derive_from(value: object, citations: Iterable[Citation], rule: str) -> Quote | None:
    """Return a value that was computed from several records by a rule; None if there are no records.

    Its element names them all.
    """
    records = tuple(citations)
    return Quote(value, records[0], "", rule, records[1:]) if records else None


@dataclass
class Archive:
    """The records that a site cites, with the bytes of each."""

    project: Project
    """Project of the site."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """Bytes of each record by the path of its copy."""
    _citations: dict[Path, Citation] = field(default_factory=dict)

    def cite(self, path: Path) -> Citation:
        """Cite a file of the project or of the shipped files; raise OSError if it cannot be read."""
        path = path.resolve()
        if path not in self._citations:
            data = path.read_bytes()
            root, folder = self._home(path)
            name = path.relative_to(root).as_posix()
            copy = f"{folder}/{name}"
            self.contents[copy] = data
            self._citations[path] = Citation(name, hashlib.sha256(data).hexdigest(), copy)
        return self._citations[path]

    def find_by_digits(self, digits: Iterable[str]) -> list[Citation]:
        """Return the records that figures name by the digits of their hashes, by path."""
        prefixes = set(digits)
        citations = [citation for citation in self._citations.values() if citation.digits in prefixes]
        if unknown := prefixes - {citation.digits for citation in citations}:
            raise KeyError(f"no record was cited whose hash begins with {min(unknown)}")
        return sorted(citations, key=lambda citation: citation.copy)

    def find(self, name: str) -> Citation | None:
        """Cite the record that a page names by its path, relative to the project or to the shipped files.

        None for any other file: a site is for everyone, so a link on a page must not bring a private file into it.
        """
        if not name.endswith(".json") or "\0" in name:
            return None
        for owner in (self.project, projects.shipped_project()):
            path = (owner.root / name).resolve()
            folders = (owner.devlog, owner.knowledge, *(owner.root / folder for folder in RECORD_FOLDERS))
            if any(path.is_relative_to(folder.resolve()) for folder in folders) and path.is_file():
                return self.cite(path)
        return None

    def _home(self, path: Path) -> tuple[Path, str]:
        """Return the root that a file belongs to, the inner one of two, and the folder of its copy in the site."""
        own, shipped = self.project.root.resolve(), projects.shipped_project().root.resolve()
        folders = {shipped: f"{RECORDS}/{SHIPPED}", own: RECORDS}
        roots = [root for root in folders if path.is_relative_to(root)]
        root = max(roots, key=lambda root: len(root.parts), default=path.parent)
        return root, folders.get(root, f"{RECORDS}/{SHIPPED}")
