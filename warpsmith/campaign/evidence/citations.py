"""Citations: where pages and knowledge entries name files of campaigns, and whether those still stand."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpsmith.core.evidence import Stale
from warpsmith.errors import BadEntry
from warpsmith.knowledge import check as knowledge
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge.evidence import EvidenceRow
from warpsmith.ledger.store import RECORD
from warpsmith.project import Project

_LINK = re.compile(r"\]\(([^)\s#]+)")
_FIGURE = re.compile(r"\d+(?:\.\d+)?x \[\d[^\]]*\]")
"""A speedup with its interval, as reports write it."""
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CitingPage:
    """A page that may cite; of an own copy of shipped knowledge only what the shipped page does not say."""

    path: Path
    """Its file."""
    text: str
    """Its text."""
    rendered: bool
    """Whether the lab renders it from records."""


def citing_pages(project: Project) -> list[CitingPage]:
    """The README, the changes, the documentation and the devlog, in order of path."""
    folders = (project.root / "docs", project.knowledge, project.devlog)
    paths = {path for folder in folders for path in folder.rglob("*.md")}
    paths |= {path for name in ("README.md", "CHANGES.md") if (path := project.root / name).is_file()}
    return [
        CitingPage(
            path, _own(project, path, path.read_text(errors="replace")), path.is_relative_to(project.devlog)
        )
        for path in sorted(paths)
    ]


def cited_files(project: Project, page: CitingPage) -> list[Path]:
    """The files of campaigns that a page names, by links or by paths from the project's root, each once."""
    return list(dict.fromkeys(_cited(project, page.path, page.text)))


def find_stale_citations(
    project: Project, page: CitingPage, named: Collection[Path], doubtful: Mapping[Path, str]
) -> Iterator[Stale]:
    """What a page cites that is gone, or rests on a record that is stale itself.

    `doubtful` has the file of each stale record, and how messages name it.
    """
    shown = project.relative(page.path)
    for target in named:
        if not target.exists():
            message = f"{shown} cites {project.relative(target)}, which does not exist; restore it, or mend that."
            yield Stale(path=shown, message=message)
        elif not page.rendered and (record := _rests_on(target, doubtful)):
            message = f"{shown} cites {project.relative(target)}, and {record} is stale; mend that first."
            yield Stale(path=shown, message=message)


def find_misquotes(project: Project, page: CitingPage, rendered: Mapping[Path, str]) -> Iterator[Stale]:
    """Speedups in a section of a written page that stand on none of the rendered pages which the section cites."""
    shown = project.relative(page.path)
    for section in re.split(r"^#+ ", _FENCED.sub("", page.text), flags=re.MULTILINE):
        sources = [path for path in _cited(project, page.path, section) if path in rendered]
        said = "".join(rendered[path].replace("\\", "") for path in sources)
        for figure in _FIGURE.findall(section) if sources else ():
            if figure not in said:
                where = ", ".join(project.relative(path) for path in sources)
                message = f"{shown}: `{figure}` stands nowhere in {where}; write what stands there."
                yield Stale(path=shown, message=message)


def check_entry_evidence(project: Project, page: CitingPage) -> Iterator[Stale]:
    """What an entry's evidence gets wrong: a record that changed since it was cited, a figure that is not its own.

    A record that is gone is found by `stale`, a page that is no entry by `warpsmith knowledge check`.
    """
    shown = project.relative(page.path)
    try:
        evidence = entries.read_listed_entry(project, page.path).matter.evidence
    except BadEntry:
        return
    for item in evidence:
        if item.record is None or not (project.root / item.record).is_file() or f"{item.sha256}" not in page.text:
            continue
        if wrong := knowledge.evidence_problem(project, item):
            yield Stale(path=shown, message=f"{shown} {wrong}")
        else:
            yield from _rows(project, shown, page.text, item.record)


def _rows(project: Project, shown: str, text: str, record: str) -> Iterator[Stale]:
    rows = [line.strip() for line in text.splitlines() if line.startswith("|") and f"| {record} |" in line]
    if not rows:
        return
    true = EvidenceRow.read((project.root / record).read_bytes(), record).render()
    for row in rows:
        if row != true:
            message = f"{shown}: the row `{row}` is not what {record} says; write `{true}`."
            yield Stale(path=shown, message=message)


def _cited(project: Project, path: Path, text: str) -> Iterator[Path]:
    devlog = re.escape(project.relative(project.devlog))
    named = [(path.parent, link) for link in _LINK.findall(text)]
    named += [(project.root, link) for link in re.findall(rf"(?<![\w/.]){devlog}/[\w./-]+\.\w+", text)]
    for folder, link in named:
        target = Path(os.path.normpath(folder / link))
        if target.is_relative_to(project.devlog) and len(target.relative_to(project.devlog).parts) > 2:
            yield target


def _rests_on(target: Path, doubtful: Mapping[Path, str]) -> str:
    """A stale record that a file of a campaign rests on: its round's; outside of rounds any of the campaign."""
    for record, name in doubtful.items():
        folder = record.parent if record.name == RECORD else record
        above = folder.parent.parent if record.name == RECORD else folder.parent
        if target == record or target.is_relative_to(folder) or target.parent == above:
            return name
    return ""


def _own(project: Project, path: Path, text: str) -> str:
    """A page without the lines of the shipped page of its place, which speak of another project."""
    if not path.is_relative_to(project.knowledge):
        return text
    twins = [layer / path.relative_to(project.knowledge) for layer in project.knowledge_layers[1:]]
    shipped = {line for twin in twins if twin.is_file() for line in twin.read_text(errors="replace").splitlines()}
    return "\n".join(line for line in text.splitlines() if line not in shipped) if shipped else text
