"""The knowledge folder's front page: what is known by symptom, counter, operator, language and hardware."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from warpsmith.core.knowledge import Symptom
from warpsmith.knowledge import hardware, symptom_page, symptoms
from warpsmith.knowledge.entry import Listed
from warpsmith.knowledge.tables import GENERATED, KINDS, by_kind, doubt, link, links, remarks, table
from warpsmith.project import Project

NAME = "README.md"
"""Browsers of files show it with the folder."""

_SAME = {"matmul": "gemm"}
"""Families of operators that go by two names."""

_KINDS = ("gpu", "cpu")

_LEAD = """\
Every entry says when it applies, why it works, what it moves, and on what evidence. [index.md](index.md) lists
them all, and by metric. `warpsmith knowledge search WORDS` finds entries, also by a symptom in plain words such as
`occupancy is low`; `warpsmith knowledge show ID` prints one."""

_COUNTERS = """\
A profile with hardware counters names these, the one that costs the most first. Each page says what it looks like,
why its threshold stands where it does, and what is mistaken for it."""

_HARDWARE = """\
A device's page gives each figure with its source, and `UNKNOWN` where there is none. Most entries hold on every
device of a kind; named here are those for some devices only. Tips are what campaigns on a device taught."""


def path(project: Project) -> Path:
    """Where the front page of the project's own knowledge is."""
    return project.knowledge / NAME


def render(project: Project, found: Sequence[Listed]) -> str:
    """The front page over the entries of the project's own layer; raises BadEntry where a page does not read."""
    sections = {
        "By symptom": _symptoms(symptoms.of(project, project.knowledge), found),
        "By counter": _counters(project, found),
        "By operator": _operators(found),
        "By language": _languages(project, found),
        "By hardware": _hardware(project, found),
    }
    there = {title: text for title, text in sections.items() if text}
    contents = ", ".join(f"[{title.casefold()}](#{_anchor(title)})" for title in there)
    parts = [f"## {title}\n\n{text}" for title, text in there.items()]
    return "\n\n".join([GENERATED, "# What is known", _LEAD, f"Here: {contents}.", *parts]) + "\n"


def _symptoms(told: Sequence[Symptom], found: Iterable[Listed]) -> str:
    if not told:
        return ""
    known = {entry.id: entry for entry in found}
    contents = "\n".join(f"- [{symptom.title}](#{_anchor(symptom.title)})" for symptom in told)
    source = f"The table behind this list is [{symptoms.FILE}]({symptoms.FILE})."
    named = {id for symptom in told for id in symptom.entries}
    others = [entry.matter for id, entry in known.items() if id not in named]
    rest = ["### Under no symptom yet", "\n".join(f"- {link(m, m.title)}" for m in others)] if others else []
    return "\n\n".join([contents, source, *(_symptom(symptom, known) for symptom in told), *rest])


def _symptom(symptom: Symptom, known: Mapping[str, Listed]) -> str:
    shown = ", ".join(f"`{metric}` ({reading})" for metric, reading in symptom.shows.items())
    lines = [f"- Shown by: {shown}"]
    for label, ids in (("Try", symptom.optimizations), ("Rule out", symptom.anti_patterns)):
        if there := [known[id] for id in ids if id in known]:
            lines.append(f"- {label}:")
            lines += [f"  - {_titled(entry)}" for entry in there]
    return f"### {symptom.title}\n\n{symptom.means}\n\n" + "\n".join(lines)


def _titled(entry: Listed) -> str:
    return link(entry.matter, entry.matter.title) + remarks(entry.matter.language, doubt(entry))


def _counters(project: Project, found: Iterable[Listed]) -> str:
    """One row a page of a symptom that hardware counters show."""
    pages = [symptom_page.read(project, file) for file in symptom_page.paths(project.knowledge)]
    known = {entry.id: entry.matter for entry in found}
    rows = [
        (
            f"[{page.matter.title}]({symptom_page.FOLDER}/{page.matter.id}.md)",
            f"`{page.matter.metric}`: {page.matter.threshold}",
            page.matter.bottleneck,
            ", ".join(link(known[id]) for id in page.matter.entries if id in known),
        )
        for page in sorted(pages, key=lambda page: (page.matter.bottleneck, page.matter.title))
    ]
    return f"{_COUNTERS}\n\n{table(('Symptom', 'Trigger', 'Bottleneck', 'Entries'), rows)}" if rows else ""


def _anchor(title: str) -> str:
    """What browsers of Markdown call a heading in an address."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def _operators(found: Sequence[Listed]) -> str:
    families = sorted({_SAME.get(op, op) for entry in found for op in entry.matter.applies_to.ops} - {"any"})
    parts = [_section(_names(family), _of_family(found, family)) for family in families]
    return "\n\n".join(filter(None, [*parts, _section("any operator", _of_family(found, "any"))]))


def _of_family(found: Iterable[Listed], family: str) -> list[Listed]:
    return [entry for entry in found if any(_SAME.get(op, op) == family for op in entry.matter.applies_to.ops)]


def _names(family: str) -> str:
    return ", ".join([family, *(other for other, same in _SAME.items() if same == family)])


def _languages(project: Project, found: Sequence[Listed]) -> str:
    own = sorted({entry.matter.language for entry in found if entry.matter.language})
    parts = [_section(name, [entry for entry in found if entry.matter.language == name]) for name in own]
    kinds = {id: target.kind for id, target in hardware.targets(project).items()}
    for kind in _KINDS:
        shared = [entry for entry in found if entry.matter.language is None and kind in _kinds(entry, kinds)]
        parts.append(_section(f"every language on a {kind.upper()}", shared))
    return "\n\n".join(filter(None, parts))


def _kinds(entry: Listed, known: Mapping[str, str]) -> set[str]:
    """The kinds of device that an entry holds on, given those of all targets."""
    return {known.get(target, target) for target in entry.matter.applies_to.targets}


def _section(title: str, found: Sequence[Listed]) -> str:
    """One family's entries; empty where there are none."""
    lines = [f"- {kind}: {cell}" for kind, cell in zip(KINDS.values(), by_kind(found), strict=True) if cell]
    return f"### {title}\n\n" + "\n".join(lines) if lines else ""


def _hardware(project: Project, found: Sequence[Listed]) -> str:
    """One row a device that has a page, a measurement or tips in the project's own layer."""
    pages = {file.stem for file in hardware.paths(project.knowledge)}
    measured = {file.stem.rpartition("-")[0] for file in project.measurements.glob("*.json")}
    tips = sorted(project.knowledge.glob("experience/*/*/*.md"))
    known = hardware.targets(project)
    rows = []
    for id in {*pages, *measured, *(tip.parts[-3] for tip in tips)}:
        target = known.get(id)
        architecture, name = (target.architecture, target.name) if target else ("", "")
        naming = [entry for entry in found if id in entry.matter.applies_to.targets and id not in _KINDS]
        row = (
            f"[{id}](hardware/{id}.md)" if id in pages else id,
            name,
            links(naming),
            "[records](hardware/measured/)" if id in measured else "",
            ", ".join(_tip(project, tip) for tip in tips if tip.parts[-3] == id),
        )
        rows.append((architecture, *row))
    header = ("Architecture", "Device", "Name", "Entries that name it", "Measured here", "Tips")
    return f"{_HARDWARE}\n\n{table(header, sorted(rows))}" if rows else ""


def _tip(project: Project, page: Path) -> str:
    return f"[{page.parent.name} in {page.stem}]({page.relative_to(project.knowledge).as_posix()})"
