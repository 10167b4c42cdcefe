"""Knowledge entries: an optimization or an anti-pattern, parsed from its page and rendered back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import yaml
from pydantic import Field

from warpsmith.core.base import Model
from warpsmith.core.knowledge import SECTIONS, EntryMatter, HitRate, Status
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page
from warpsmith.project import Project

FOLDERS = {"optimization": "optimizations", "anti-pattern": "anti-patterns"}
"""Folder by kind of entry."""

GLOBS = tuple(f"{above}{folder}/*.md" for above in ("", "languages/*/") for folder in FOLDERS.values())
"""Locations of entries in a knowledge folder."""


Layer = Literal["own", "shipped"]
"""Owner of an entry: the project, or the installed Warpsmith."""

_WHEN = re.compile(rf"^## {SECTIONS[0]}\s*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ListedEntry:
    """An entry as a catalog lists it, with unparsed sections: parsing all sections would slow every search."""

    matter: EntryMatter
    """The front matter."""
    body: str
    """Markdown text below the front matter."""
    path: str
    """Path of its file, in the form of `Entry.path`."""
    layer: Layer
    """Owner of the page: the project, or Warpsmith."""
    hit_rate: HitRate | None = None
    """Hit rate over the project's rounds; None if no round applied it."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.matter.id

    @property
    def status(self) -> Status:
        """Status in the front matter, or `demoted` where failed tries demote it; `refuted` stays."""
        demoted = self.hit_rate is not None and self.hit_rate.demoted and self.matter.status != "refuted"
        return "demoted" if demoted else self.matter.status

    @property
    def applies(self) -> str:
        """Text of `When to apply`, the first section."""
        match = _WHEN.search(self.body)
        return match[1] if match else ""

    @property
    def when(self) -> str:
        """First line of `When to apply`, without list marks."""
        first = next((line for line in self.applies.splitlines() if line.strip()), "")
        return first.strip().lstrip("-*").strip()


class Entry(Model):
    """An entry with its parsed sections."""

    matter: EntryMatter
    """The front matter."""
    preamble: str = ""
    """Text before the first section: empty, or the title as a heading."""
    sections: dict[str, str] = Field(min_length=len(SECTIONS))
    """Markdown text by the names in `SECTIONS`."""
    path: str
    """Path of its file, relative to the project; absolute if it ships with an installed Warpsmith."""
    layer: Layer = "own"
    """Owner of the page: the project, or Warpsmith."""
    hit_rate: HitRate | None = None
    """Hit rate over the project's rounds; null if no round applied it, or if it was not computed."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.matter.id

    def render(self) -> str:
        """Render the whole page in canonical form; parsing it returns this entry."""
        parts = [f"---\n{_front_matter(self.matter)}---"]
        parts += [self.preamble] if self.preamble else []
        parts += [f"## {name}\n\n{text}" for name, text in self.sections.items()]
        return "\n\n".join(parts) + "\n"


def entry_location(matter: EntryMatter) -> str:
    """Return the location of an entry, relative to its knowledge folder."""
    above = f"languages/{matter.language}/" if matter.language else ""
    return f"{above}{FOLDERS[matter.kind]}/{matter.id}.md"


def entry_paths(layer: Path) -> list[Path]:
    """Return the files of all entries in one knowledge folder, sorted."""
    return sorted(path for glob in GLOBS for path in layer.glob(glob) if not path.name.startswith("."))


def list_entries(
    project: Project, layer: Path, rates: Mapping[str, HitRate] = MappingProxyType({})
) -> tuple[list[ListedEntry], list[str]]:
    """List the entries in one knowledge folder, and the reason for each page there that is none.

    A folder may hold other people's pages: they must not keep the entries from being read.
    """
    listed: dict[str, ListedEntry] = {}
    problems = []
    for path in entry_paths(layer):
        try:
            entry = read_listed_entry(project, path, rates)
        except BadEntry as error:
            problems.append(str(error))
            continue
        if twin := listed.get(entry.id):
            problems.append(f"{entry.path} has the id of {twin.path}; rename one of them.")
        else:
            listed[entry.id] = entry
    return list(listed.values()), problems


def parse_entry(text: str, label: str) -> Entry:
    """Parse an entry; `label` is its path and begins every message.

    Raises:
        BadEntry: it violates a rule of form; the message is one sentence.
    """
    return build_entry(page.parse_page(text, label), label)


def build_entry(read: page.Page, label: str) -> Entry:
    """Build an entry from a parsed page; raise BadEntry as `parse_entry` does."""
    matter = page.validate(EntryMatter, read.matter, label)
    if read.preamble not in ("", f"# {matter.title}"):
        raise BadEntry(f"{label} has text before `## {SECTIONS[0]}`; only `# {matter.title}` may stand there.")
    _refuse_sections(read.sections, label)
    return Entry(matter=matter, preamble=read.preamble, sections=dict(read.sections), path=label)


def read_entry(project: Project, path: Path) -> Entry:
    """Read the entry in a file of one of the project's knowledge layers.

    Raises:
        BadEntry: it violates a rule of form, or its location does not match its front matter.
    """
    label = project.relative(path)
    entry = parse_entry(page.read_text(path, label), label)
    return entry.model_copy(update={"layer": _layer(project, path, label, entry.matter)})


def read_listed_entry(
    project: Project, path: Path, rates: Mapping[str, HitRate] = MappingProxyType({})
) -> ListedEntry:
    """Read the entry in a file without parsing its sections; raise BadEntry as `read_entry` does.

    `rates` holds the hit rates by entry.
    """
    label = project.relative(path)
    data, body = page.split_front_matter(page.read_text(path, label), label)
    matter = page.validate(EntryMatter, data, label)
    return ListedEntry(matter, body, label, _layer(project, path, label, matter), rates.get(matter.id))


def _layer(project: Project, path: Path, label: str, matter: EntryMatter) -> Layer:
    """Return the layer that a file belongs to; raise BadEntry if its location is wrong."""
    if matter.id != path.stem:
        raise BadEntry(f"{label} has the id `{matter.id}`; the id must be the file name, `{path.stem}`.")
    layer = next((root for root in project.knowledge_layers if path.is_relative_to(root)), project.knowledge)
    if not path.is_relative_to(layer) or path.relative_to(layer).as_posix() != entry_location(matter):
        expected = project.relative(layer / entry_location(matter))
        raise BadEntry(f"{label} is in the wrong folder for its kind and language; move it to {expected}.")
    return "own" if layer == project.knowledge else "shipped"


def _refuse_sections(sections: tuple[tuple[str, str], ...], label: str) -> None:
    names = [name for name, _ in sections]
    order = ", ".join(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            raise BadEntry(f"{label} has the unknown section `## {name}`; use `###` inside one of: {order}.")
        if names.count(name) > 1:
            raise BadEntry(f"{label} has the section `## {name}` twice; join them.")
    for name in SECTIONS:
        if name not in names:
            raise BadEntry(f"{label} lacks the section `## {name}`; an entry has, in order: {order}.")
    for name, expected in zip(names, SECTIONS, strict=True):
        if name != expected:
            raise BadEntry(f"{label} has `## {name}` where `## {expected}` belongs; the order is: {order}.")
    for name, text in sections:
        if not text.strip():
            raise BadEntry(f"{label} has nothing under `## {name}`; write it, or `Nothing known.`.")


def _front_matter(matter: EntryMatter) -> str:
    data = matter.model_dump(mode="json")
    data["evidence"] = [item.model_dump(mode="json", exclude_none=True) for item in matter.evidence]
    if matter.program is None:
        del data["program"]  # most entries are about one kernel
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)
