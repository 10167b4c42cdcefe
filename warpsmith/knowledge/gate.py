"""The gate that LEARN passes through: an agent brings the words, the lab adds the status and the evidence.

A round's record names the entry, and the entry cites the record's hash. So LEARN goes in two steps: `prepare_*`
checks everything while the round is open and touches nothing; once the record is published, `Prepared.write`
puts the entry in place. It may be run again after a crash: a record that is cited already is not cited twice.
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
from warpsmith.knowledge.entry import Entry, place
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.knowledge.page import Page
from warpsmith.project import Project

_STATUS = {"refine": "refined", "refute": "refuted"}
"""What an action makes of an entry's status; adding leaves it."""

_NO_SHA = "0" * 64
_NO_ROW = EvidenceRow(config="-", before="-", after="-", change="-", source="-")
"""What stands for the record while it does not exist."""

_RESULT = re.compile(
    r"\d\s*(?:[x\u00d7](?!\w)|times\b|[num\u00b5\u03bc]s\b|[KMGT]i?B/s|[GT]FLOP|%\s*(?:faster|slower|less|more|gain|speed))"
)
"""A figure that only a measurement could give."""


class Prepared(Model):
    """A change of the knowledge that was checked and waits for its record; the open round keeps it."""

    action: Literal["add", "refine", "refute"]
    """What is done."""
    entry: Slug
    """The entry."""
    path: str
    """The file that will be written, relative to the project."""
    record: str
    """Where the round's record will be, relative to the project."""
    when: Minute
    """When the round was closed, for the note's date."""
    section: str
    """The section that the text goes under; empty for a whole entry."""
    text: str
    """The agent's words: a whole entry, or a note."""

    def write(self, project: Project, sha256: str, row: EvidenceRow) -> Path:
        """Put the entry in place with the record's hash and row, whole or not at all; renew the index.

        Run twice with the same arguments, it leaves the same bytes. Meanwhile another campaign may have
        changed the entry: its change stays.
        """
        from filelock import FileLock

        lock = project.root / ".warpsmith" / "knowledge.lock"
        lock.parent.mkdir(exist_ok=True)
        target = project.root / self.path
        cited = Evidence(source="local", record=self.record, sha256=sha256)
        with FileLock(lock):
            standing = self._standing(project)
            if cited not in standing.matter.evidence:
                files.write(target, self._apply(standing, cited, row).render())
            index.refresh(project)
        return target

    def refuse(self, project: Project) -> None:
        """Raise BadEntry where the change, or the index after it, would break a rule; changes nothing."""
        changed = self._apply(self._standing(project), _placeholder(self.record), _NO_ROW)
        for problem in check.entry_problems(changed):
            raise BadEntry(problem)
        index.render(project)

    def _standing(self, project: Project) -> Entry:
        """What the change is made to: the project's own entry, else the agent's, else the shipped one."""
        own = project.root / self.path
        if own.is_file():
            return entries.read(project, own)
        if self.action == "add":
            return _draft(self.text, self.path, self.record)
        return Catalog.load(project).get(self.entry)

    def _apply(self, entry: Entry, cited: Evidence, row: EvidenceRow) -> Entry:
        others = [item for item in entry.matter.evidence if item.record != cited.record]
        status = _STATUS.get(self.action, entry.matter.status)
        matter = entry.matter.model_copy(update={"evidence": (*others, cited), "status": status})
        sections = dict(entry.sections)
        if self.section:
            said = f"**{_STATUS[self.action].capitalize()} {self.when[:10]}**, `{self.record}`:"
            sections[self.section] += f"\n\n{said}\n\n{self.text}"
        sourced = evidence.with_source_types(sections["Evidence"], matter.evidence)
        sections["Evidence"] = evidence.with_row(sourced, row)
        changed = entry.model_copy(update={"matter": matter, "sections": sections, "path": self.path})
        return entries.parse(changed.render(), self.path)


def prepare_add(project: Project, text: str, record: str, when: str) -> Prepared:
    """Check a new entry that an agent wrote; its front matter may leave out `evidence` and `status`.

    `record` is where the open round's record will be, relative to the project; `when` is in UTC to the minute.

    Raises:
        BadEntry: it breaks a rule of form, its id is taken, or it states figures that nothing backs.
    """
    shown = "the new entry"
    draft = _draft(text, shown, record)
    if twin := Catalog.load(project).entries.get(draft.id):
        raise BadEntry(f"{shown} has the id of {twin.path}; refine or refute that one, or choose another id.")
    _refuse_figures(page.parse(text, shown), draft)
    path = project.relative(project.knowledge / place(draft.matter))
    prepared = Prepared(action="add", entry=draft.id, path=path, record=record, when=when, section="", text=text)
    prepared.refuse(project)
    return prepared


def prepare_refine(project: Project, id: str, note: str, record: str, when: str) -> Prepared:
    """Check a note that refines an entry; it goes under the section that its first heading names.

    Without a heading it goes under `Generalization`. A shipped entry is copied into the project's own layer.

    Raises:
        Misuse: there is no such entry.
        BadEntry: the note names no section, states a measured figure, or breaks the page.
    """
    section, text = _note(note)
    return _prepare_note("refine", project, id, section, text, record, when)


def prepare_refute(project: Project, id: str, because: str, record: str, when: str) -> Prepared:
    """Check the reason that refutes an entry; it stays in the catalog, with the reason under `Pitfalls`.

    Raises:
        Misuse: there is no such entry.
        BadEntry: the reason states a measured figure, or breaks the page.
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
    shown = "the note"
    page.refuse_untrusted(text, shown)
    if not text:
        raise BadEntry(f"{shown} is empty; say what the evidence changed.")
    if any(page.is_top_heading(token) for token in page.blocks(text)):
        raise BadEntry(f"{shown} has a heading of level one or two; use `###` inside it.")
    if result := _RESULT.search(text):
        raise BadEntry(f"{shown} states the result `{result[0]}`; say it in words, the lab adds the figures.")
    entry = Catalog.load(project).get(id)
    path = project.relative(project.knowledge / place(entry.matter))
    prepared = Prepared(action=action, entry=id, path=path, record=record, when=when, section=section, text=text)
    prepared.refuse(project)
    return prepared


def _note(note: str) -> tuple[str, str]:
    """The section a note names, and its text."""
    first, _, rest = note.strip().partition("\n")
    if not first.startswith("## "):
        return "Generalization", note.strip()
    section = first.removeprefix("## ").strip()
    allowed = [name for name in SECTIONS if name != "Evidence"]
    if section not in allowed:
        raise BadEntry(f"the note names the section `{section}`; it may name one of: {', '.join(allowed)}.")
    return section, rest.strip()


def _draft(text: str, shown: str, record: str) -> Entry:
    """The agent's file as an entry: active, backed by what it cites and by the round to be recorded."""
    read = page.parse(text, shown)
    given = read.matter.get("evidence") or []
    data = {**read.matter, "evidence": [_placeholder(record), *given] if isinstance(given, list) else given}
    matter = page.validate(EntryMatter, {**data, "status": "active"}, shown)
    if any(item.source == "local" for item in matter.evidence[1:]):
        raise BadEntry(f"{shown} cites a local record; leave that to the lab, which adds the round's.")
    sections = tuple(
        (name, evidence.with_source_types(text, matter.evidence) if name == "Evidence" else text)
        for name, text in read.sections
    )
    return entries.build(Page(matter.model_dump(), read.preamble, sections), shown)


def _placeholder(record: str) -> Evidence:
    return Evidence(source="local", record=record, sha256=_NO_SHA)


def _refuse_figures(read: Page, draft: Entry) -> None:
    """Figures in the Evidence section need the address of a document that the front matter cites."""
    urls = [item.url for item in draft.matter.evidence if item.url]
    for line in dict(read.sections)["Evidence"].splitlines():
        if re.search(r"\d", line) and not any(url in line for url in urls):
            raise BadEntry(
                f"the new entry states figures under `## Evidence` without a cited url: `{line.strip()[:80]}`; "
                "remove them, the lab adds the measured row."
            )
