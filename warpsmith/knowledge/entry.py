"""Entry: one piece of knowledge, an optimization or an anti-pattern, read from its page and rendered again."""

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
"""Kind of entry to folder."""

GLOBS = tuple(f"{above}{folder}/*.md" for above in ("", "languages/*/") for folder in FOLDERS.values())
"""Where entries are in a knowledge folder."""


Layer = Literal["own", "shipped"]
"""Whether the project holds an entry, or Warpsmith brought it."""

_WHEN = re.compile(rf"^## {SECTIONS[0]}\s*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Listed:
    """An entry as a catalog lists it: taking the sections of all pages apart would slow every search."""

    matter: EntryMatter
    """The front matter."""
    body: str
    """The Markdown below it."""
    path: str
    """Its file, as an `Entry` has it."""
    layer: Layer
    """Who holds it."""
    hit_rate: HitRate | None = None
    """What the project's rounds made of it; None where none applied it."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.matter.id

    @property
    def status(self) -> Status:
        """The front matter's, save where the rounds that tried it demote it; what is refuted stays so."""
        demoted = self.hit_rate is not None and self.hit_rate.demoted and self.matter.status != "refuted"
        return "demoted" if demoted else self.matter.status

    @property
    def applies(self) -> str:
        """The text of `When to apply`, the first section."""
        found = _WHEN.search(self.body)
        return found[1] if found else ""

    @property
    def when(self) -> str:
        """The first line of `When to apply`, without list marks."""
        first = next((line for line in self.applies.splitlines() if line.strip()), "")
        return first.strip().lstrip("-*").strip()


class Entry(Model):
    """An entry with its text."""

    matter: EntryMatter
    """The front matter."""
    preamble: str = ""
    """What stands before the first section: nothing, or the title as a heading."""
    sections: dict[str, str] = Field(min_length=len(SECTIONS))
    """Name of each of `SECTIONS` to its Markdown text."""
    path: str
    """Its file, relative to the project; absolute where it ships with an installed Warpsmith."""
    layer: Layer = "own"
    """Who holds it."""
    hit_rate: HitRate | None = None
    """What the project's rounds made of it; null where none applied it, or where they were not asked."""

    @property
    def id(self) -> str:
        """The entry's id."""
        return self.matter.id

    def render(self) -> str:
        """The whole page in its one canonical form: reading it gives this entry again."""
        parts = [f"---\n{_front_matter(self.matter)}---"]
        parts += [self.preamble] if self.preamble else []
        parts += [f"## {name}\n\n{text}" for name, text in self.sections.items()]
        return "\n\n".join(parts) + "\n"


def place(matter: EntryMatter) -> str:
    """Where an entry belongs in a knowledge folder."""
    above = f"languages/{matter.language}/" if matter.language else ""
    return f"{above}{FOLDERS[matter.kind]}/{matter.id}.md"


def paths(layer: Path) -> list[Path]:
    """The files of all entries in one knowledge folder, in order."""
    return sorted(path for glob in GLOBS for path in layer.glob(glob) if not path.name.startswith("."))


def parse(text: str, shown: str) -> Entry:
    """An entry from its text; `shown` is its path and begins every message.

    Raises:
        BadEntry: it breaks a rule of form, in one sentence.
    """
    return build(page.parse(text, shown), shown)


def build(read: page.Page, shown: str) -> Entry:
    """An entry from a page that was taken apart; raises BadEntry as `parse` does."""
    matter = page.validate(EntryMatter, read.matter, shown)
    if read.preamble not in ("", f"# {matter.title}"):
        raise BadEntry(f"{shown} has text before `## {SECTIONS[0]}`; only `# {matter.title}` may stand there.")
    _refuse_sections(read.sections, shown)
    return Entry(matter=matter, preamble=read.preamble, sections=dict(read.sections), path=shown)


def read(project: Project, path: Path) -> Entry:
    """The entry in a file of one of the project's knowledge layers.

    Raises:
        BadEntry: it breaks a rule of form, or is not in the place that its front matter asks for.
    """
    shown = project.relative(path)
    entry = parse(page.text_of(path, shown), shown)
    return entry.model_copy(update={"layer": _layer(project, path, shown, entry.matter)})


def listed(project: Project, path: Path, rates: Mapping[str, HitRate] = MappingProxyType({})) -> Listed:
    """The entry in a file with its text as it stands; raises BadEntry as `read` does, save for the sections.

    `rates` are the hit rates by entry.
    """
    shown = project.relative(path)
    data, body = page.split(page.text_of(path, shown), shown)
    matter = page.validate(EntryMatter, data, shown)
    return Listed(matter, body, shown, _layer(project, path, shown, matter), rates.get(matter.id))


def _layer(project: Project, path: Path, shown: str, matter: EntryMatter) -> Layer:
    """Whose layer a file is in; refuses one that is not in its place there."""
    if matter.id != path.stem:
        raise BadEntry(f"{shown} has the id `{matter.id}`; an id is its file's stem, here `{path.stem}`.")
    layer = next((root for root in project.knowledge_layers if path.is_relative_to(root)), project.knowledge)
    if not path.is_relative_to(layer) or path.relative_to(layer).as_posix() != place(matter):
        wanted = project.relative(layer / place(matter))
        raise BadEntry(f"{shown} is in the wrong folder for its kind and language; move it to {wanted}.")
    return "own" if layer == project.knowledge else "shipped"


def _refuse_sections(sections: tuple[tuple[str, str], ...], shown: str) -> None:
    names = [name for name, _ in sections]
    wanted = ", ".join(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            raise BadEntry(f"{shown} has the unknown section `## {name}`; use `###` inside one of: {wanted}.")
        if names.count(name) > 1:
            raise BadEntry(f"{shown} has the section `## {name}` twice; join them.")
    for name in SECTIONS:
        if name not in names:
            raise BadEntry(f"{shown} lacks the section `## {name}`; an entry has, in order: {wanted}.")
    for name, expected in zip(names, SECTIONS, strict=True):
        if name != expected:
            raise BadEntry(f"{shown} has `## {name}` where `## {expected}` belongs; the order is: {wanted}.")
    for name, text in sections:
        if not text.strip():
            raise BadEntry(f"{shown} has nothing under `## {name}`; say it, or `Nothing known.`.")


def _front_matter(matter: EntryMatter) -> str:
    data = matter.model_dump(mode="json")
    data["evidence"] = [item.model_dump(mode="json", exclude_none=True) for item in matter.evidence]
    if matter.program is None:
        del data["program"]  # most entries are about one kernel
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1000)
