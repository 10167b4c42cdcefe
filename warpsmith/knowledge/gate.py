"""Knowledge changes in LEARN: an agent writes the text, the lab adds the status and the evidence.

A round's record names the entry, and the entry cites the record's hash, so LEARN has two steps. `prepare_*`
checks everything while the round is open and changes nothing. Once the record is published, `Prepared.write`
writes the entry. It may run again after a crash: a record that is already cited is not cited twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from warpsmith import files
from warpsmith.core.base import Minute, Model, Slug
from warpsmith.core.knowledge import SECTIONS, EntryMatter, Evidence
from warpsmith.errors import BadEntry
from warpsmith.knowledge import check, evidence, index, page
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.entry import Entry, entry_location
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.knowledge.page import Page
from warpsmith.project import Project

_STATUS = {"refine": "refined", "refute": "refuted"}
"""Status of an entry after each action; adding does not change it."""

_NO_SHA = "0" * 64
_NO_ROW = EvidenceRow(config="-", before="-", after="-", change="-", source="-")
"""Placeholder row while the record does not exist."""


class Prepared(Model):
    """A checked change of the knowledge that waits for its record; the open round stores it."""

    action: Literal["add", "refine", "refute"]
    """Kind of change."""
    entry: Slug
    """Id of the entry."""
    path: str
    """Path of the file that will be written, relative to the project."""
    record: str
    """Path of the round's future record, relative to the project."""
    when: Minute
    """Time at which the round was closed, for the note's date."""
    section: str
    """Section that the text is added to; empty for a whole entry."""
    text: str
    """Text by the agent: a whole entry, or a note."""

    def write(self, project: Project, sha256: str, row: EvidenceRow) -> Path:
        """Write the entry with the record's hash and row, completely or not at all, and update the index.

        A second run with the same arguments leaves the same
        bytes. If another campaign has changed the entry in the
        meantime, its change is kept.
        """
        from filelock import FileLock

        lock = project.scratch / "knowledge.lock"
        lock.parent.mkdir(exist_ok=True)
        target = project.root / self.path
        cited = Evidence(source="local", record=self.record, sha256=sha256)
        with FileLock(lock):
            entry = self._base_entry(project)
            if cited not in entry.matter.evidence:
                files.write_file(target, self._apply(entry, cited, row).render())
            index.write_pages(project)
        return target

    def refuse(self, project: Project) -> None:
        """Raise BadEntry if the change, or the index after it, would violate a rule; write nothing."""
        changed = self._apply(self._base_entry(project), _placeholder(self.record), _NO_ROW)
        for problem in check.entry_problems(changed):
            raise BadEntry(problem)
        index.render_pages(project)

    def _base_entry(self, project: Project) -> Entry:
        """Return the entry to change: the project's own one, else the agent's text, else the shipped one."""
        own = project.root / self.path
        if own.is_file():
            return entries.read_entry(project, own)
        if self.action == "add":
            return _draft(self.text, self.path, self.record)
        return Catalog.load(project).get(self.entry)

    def _apply(self, entry: Entry, cited: Evidence, row: EvidenceRow) -> Entry:
        others = [item for item in entry.matter.evidence if item.record != cited.record]
        status = _STATUS.get(self.action, entry.matter.status)
        matter = entry.matter.model_copy(update={"evidence": (*others, cited), "status": status})
        sections = dict(entry.sections)
        if self.section:
            heading = f"**{_STATUS[self.action].capitalize()} {self.when[:10]}**, `{self.record}`:"
            sections[self.section] += f"\n\n{heading}\n\n{self.text}"
        sourced = evidence.set_source_types(sections["Evidence"], matter.evidence)
        sections["Evidence"] = evidence.add_row(sourced, row)
        changed = entry.model_copy(update={"matter": matter, "sections": sections, "path": self.path})
        return entries.parse_entry(changed.render(), self.path)


def prepare_add(project: Project, text: str, record: str, when: str) -> Prepared:
    """Check a new entry by an agent; its front matter may omit `evidence` and `status`.

    `record` is the path of the open round's future record,
    relative to the project; `when` is in UTC to the minute.

    Raises:
        BadEntry: it violates a rule of form, its id exists, or it states figures without a source.
    """
    label = "the new entry"
    draft = _draft(text, label, record)
    if twin := Catalog.load(project).entries.get(draft.id):
        raise BadEntry(f"{label} has the id of {twin.path}; refine or refute that one, or choose another id.")
    _refuse_figures(page.parse_page(text, label), draft)
    path = project.relative(project.knowledge / entry_location(draft.matter))
    prepared = Prepared(action="add", entry=draft.id, path=path, record=record, when=when, section="", text=text)
    prepared.refuse(project)
    return prepared


def prepare_refine(project: Project, id: str, note: str, record: str, when: str) -> Prepared:
    """Check a note that refines an entry; it is added to the section that its first heading names.

    Without a heading it is added to `Generalization`. A shipped entry is copied into the project's own layer.

    Raises:
        Misuse: there is no such entry.
        BadEntry: the note names no section, or makes the page invalid.
    """
    section, text = _note(note)
    return _prepare_note("refine", project, id, section, text, record, when)


def prepare_refute(project: Project, id: str, because: str, record: str, when: str) -> Prepared:
    """Check the reason that refutes an entry, which stays in the catalog with the reason under `Pitfalls`.

    Raises:
        Misuse: there is no such entry.
        BadEntry: the reason makes the page invalid.
    """
    return _prepare_note("refute", project, id, "Pitfalls", because.strip(), record, when)


def _prepare_note(
    action: Literal["refine", "refute"],
    project: Project,
    id: str,
    section: str,
    text: str,
    record: str,
    when: str,
) -> Prepared:
    label = "the note"
    page.refuse_untrusted(text, label)
    if not text:
        raise BadEntry(f"{label} is empty; write what the evidence changed.")
    if any(page.is_top_heading(token) for token in page.parse_blocks(text)):
        raise BadEntry(f"{label} has a heading of level one or two; use `###` inside it.")
    entry = Catalog.load(project).get(id)
    path = project.relative(project.knowledge / entry_location(entry.matter))
    prepared = Prepared(action=action, entry=id, path=path, record=record, when=when, section=section, text=text)
    prepared.refuse(project)
    return prepared


def _note(note: str) -> tuple[str, str]:
    """Return the section that a note names, and the note's text."""
    first, _, rest = note.strip().partition("\n")
    if not first.startswith("## "):
        return "Generalization", note.strip()
    section = first.removeprefix("## ").strip()
    allowed = [name for name in SECTIONS if name != "Evidence"]
    if section not in allowed:
        raise BadEntry(f"the note names the section `{section}`; it may name one of: {', '.join(allowed)}.")
    return section, rest.strip()


def _draft(text: str, label: str, record: str) -> Entry:
    """Parse the agent's text as an active entry, backed by
    the documents that it cites and by the future record."""
    parsed = page.parse_page(text, label)
    cited = parsed.matter.get("evidence") or []
    data = {**parsed.matter, "evidence": [_placeholder(record), *cited] if isinstance(cited, list) else cited}
    matter = page.validate(EntryMatter, {**data, "status": "active"}, label)
    if any(item.source == "local" for item in matter.evidence[1:]):
        raise BadEntry(f"{label} cites a local record; leave that to the lab, which adds the round's record.")
    sections = tuple(
        (name, evidence.set_source_types(text, matter.evidence) if name == "Evidence" else text)
        for name, text in parsed.sections
    )
    return entries.build_entry(Page(matter.model_dump(), parsed.preamble, sections), label)


def _placeholder(record: str) -> Evidence:
    return Evidence(source="local", record=record, sha256=_NO_SHA)


def _refuse_figures(parsed: Page, draft: Entry) -> None:
    """Raise BadEntry for figures in the Evidence section without
    the URL of a document that the front matter cites."""
    urls = [item.url for item in draft.matter.evidence if item.url]
    for line in dict(parsed.sections)["Evidence"].splitlines():
        if re.search(r"\d", line) and not any(url in line for url in urls):
            raise BadEntry(
                f"the new entry states figures under `## Evidence` without a cited url: `{line.strip()[:80]}`; "
                "remove them, the lab adds the measured row."
            )
