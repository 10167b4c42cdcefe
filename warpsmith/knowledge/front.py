"""Front page of a knowledge folder: its entries by symptom, counter, operator, language and hardware."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from warpsmith.core.knowledge import SymptomRow
from warpsmith.knowledge import hardware, prior_art, symptom_page
from warpsmith.knowledge.entry import ListedEntry
from warpsmith.knowledge.search import symptoms, synonyms
from warpsmith.knowledge.tables import (
    GENERATED,
    KINDS,
    entry_link,
    entry_links,
    format_remarks,
    links_by_kind,
    render_table,
    status_remark,
)
from warpsmith.project import Project

NAME = "README.md"
"""File name of the front page; file browsers show it with the folder."""

_SYNONYMS = {"matmul": "gemm"}
"""Families of operators with two names."""

_KINDS = ("gpu", "cpu")

_LEAD = """\
Every entry says when it applies, why it works, what it moves, and on what evidence. [index.md](index.md) lists
them all, and by metric. `warpsmith knowledge search WORDS` answers a question in plain words, and
a symptom such as `occupancy is low`; `warpsmith knowledge show ID` prints one."""

_COUNTERS = """\
A profile with hardware counters names these, the one that costs the most first. Each page says what it looks like,
why its threshold stands where it does, and what is mistaken for it."""

_HARDWARE = """\
A device's page gives each figure with its source, and `UNKNOWN` where there is none. Most entries hold on every
device of a kind; named here are those for some devices only. Tips are what campaigns on a device taught."""


def front_page_path(project: Project) -> Path:
    """Return the path of the front page of the project's own knowledge."""
    return project.knowledge / NAME


def render_front_page(project: Project, entries: Sequence[ListedEntry]) -> str:
    """Render the front page over the entries of the project's
    own layer; raise BadEntry if a page does not parse."""
    sections = {
        "By symptom": _symptoms(symptoms.read_symptom_table(project, project.knowledge), entries),
        "By counter": _counters(project, entries),
        "By operator": _operators(entries),
        "By language": _languages(project, entries),
        "By hardware": _hardware(project, entries),
    }
    filled = {title: text for title, text in sections.items() if text}
    contents = ", ".join(f"[{title.casefold()}](#{_anchor(title)})" for title in filled)
    hint = f" Searches know [synonyms]({synonyms.FILE})." if (project.knowledge / synonyms.FILE).is_file() else ""
    if (project.knowledge / prior_art.FILE).is_file():
        hint += f" The fastest known public kernels: [prior art]({prior_art.FILE})."
    parts = [f"## {title}\n\n{text}" for title, text in filled.items()]
    return "\n\n".join([GENERATED, "# What is known", _LEAD, f"Here: {contents}.{hint}", *parts]) + "\n"


def _symptoms(rows: Sequence[SymptomRow], entries: Iterable[ListedEntry]) -> str:
    if not rows:
        return ""
    by_id = {entry.id: entry for entry in entries}
    contents = "\n".join(f"- [{symptom.title}](#{_anchor(symptom.title)})" for symptom in rows)
    source = f"The table behind this list is [{symptoms.FILE}]({symptoms.FILE})."
    linked = {id for symptom in rows for id in symptom.entries}
    others = [entry.matter for id, entry in by_id.items() if id not in linked]
    rest = ["### Under no symptom yet", "\n".join(f"- {entry_link(m, m.title)}" for m in others)] if others else []
    return "\n\n".join([contents, source, *(_symptom(symptom, by_id) for symptom in rows), *rest])


def _symptom(symptom: SymptomRow, by_id: Mapping[str, ListedEntry]) -> str:
    metrics = ", ".join(f"`{metric}` ({reading})" for metric, reading in symptom.shows.items())
    lines = [f"- Shown by: {metrics}"]
    for label, ids in (("Try", symptom.optimizations), ("Rule out", symptom.anti_patterns)):
        if listed := [by_id[id] for id in ids if id in by_id]:
            lines.append(f"- {label}:")
            lines += [f"  - {_titled(entry)}" for entry in listed]
    return f"### {symptom.title}\n\n{symptom.means}\n\n" + "\n".join(lines)


def _titled(entry: ListedEntry) -> str:
    return entry_link(entry.matter, entry.matter.title) + format_remarks(
        entry.matter.language, status_remark(entry)
    )


def _counters(project: Project, entries: Iterable[ListedEntry]) -> str:
    """Render a table with one row for each symptom page."""
    pages = [
        symptom_page.read_symptom_page(project, file) for file in symptom_page.symptom_paths(project.knowledge)
    ]
    matters = {entry.id: entry.matter for entry in entries}
    rows = [
        (
            f"[{page.matter.title}]({symptom_page.FOLDER}/{page.matter.id}.md)",
            f"`{page.matter.metric}`: {page.matter.threshold}",
            page.matter.bottleneck,
            ", ".join(entry_link(matters[id]) for id in page.matter.entries if id in matters),
        )
        for page in sorted(pages, key=lambda page: (page.matter.bottleneck, page.matter.title))
    ]
    return f"{_COUNTERS}\n\n{render_table(('Symptom', 'Trigger', 'Bottleneck', 'Entries'), rows)}" if rows else ""


def _anchor(title: str) -> str:
    """Return the anchor that Markdown viewers give a heading."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def _operators(entries: Sequence[ListedEntry]) -> str:
    families = sorted({_SYNONYMS.get(op, op) for entry in entries for op in entry.matter.applies_to.ops} - {"any"})
    parts = [_section(_names(family), _of_family(entries, family)) for family in families]
    return "\n\n".join(filter(None, [*parts, _section("any operator", _of_family(entries, "any"))]))


def _of_family(entries: Iterable[ListedEntry], family: str) -> list[ListedEntry]:
    return [
        entry for entry in entries if any(_SYNONYMS.get(op, op) == family for op in entry.matter.applies_to.ops)
    ]


def _names(family: str) -> str:
    return ", ".join([family, *(other for other, same in _SYNONYMS.items() if same == family)])


def _languages(project: Project, entries: Sequence[ListedEntry]) -> str:
    own = sorted({entry.matter.language for entry in entries if entry.matter.language})
    parts = [_section(name, [entry for entry in entries if entry.matter.language == name]) for name in own]
    kinds = {id: target.kind for id, target in hardware.read_targets(project).items()}
    for kind in _KINDS:
        shared = [entry for entry in entries if entry.matter.language is None and kind in _kinds(entry, kinds)]
        parts.append(_section(f"every language on a {kind.upper()}", shared))
    return "\n\n".join(filter(None, parts))


def _kinds(entry: ListedEntry, target_kinds: Mapping[str, str]) -> set[str]:
    """Return the kinds of device that an entry applies to, given the kinds of all targets."""
    return {target_kinds.get(target, target) for target in entry.matter.applies_to.targets}


def _section(title: str, entries: Sequence[ListedEntry]) -> str:
    """Render one family's entries; empty if it has none."""
    lines = [
        f"- {kind}: {cell}" for kind, cell in zip(KINDS.values(), links_by_kind(entries), strict=True) if cell
    ]
    return f"### {title}\n\n" + "\n".join(lines) if lines else ""


def _hardware(project: Project, entries: Sequence[ListedEntry]) -> str:
    """Render one row for each device with a page, a measurement or tips in the project's own layer."""
    pages = {file.stem for file in hardware.hardware_paths(project.knowledge)}
    measured = {file.stem.rpartition("-")[0] for file in project.measurements.glob("*.json")}
    tips = sorted(project.knowledge.glob("experience/*/*/*.md"))
    targets = hardware.read_targets(project)
    rows = []
    for id in {*pages, *measured, *(tip.parts[-3] for tip in tips)}:
        target = targets.get(id)
        architecture, name = (target.architecture, target.name) if target else ("", "")
        naming = [entry for entry in entries if id in entry.matter.applies_to.targets and id not in _KINDS]
        row = (
            f"[{id}](hardware/{id}.md)" if id in pages else id,
            name,
            entry_links(naming),
            "[records](hardware/measured/)" if id in measured else "",
            ", ".join(_tip(project, tip) for tip in tips if tip.parts[-3] == id),
        )
        rows.append((architecture, *row))
    header = ("Architecture", "Device", "Name", "Entries that name it", "Measured here", "Tips")
    return f"{_HARDWARE}\n\n{render_table(header, sorted(rows))}" if rows else ""


def _tip(project: Project, page: Path) -> str:
    return f"[{page.parent.name} in {page.stem}]({page.relative_to(project.knowledge).as_posix()})"
