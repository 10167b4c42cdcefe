"""Citations: the places where pages and knowledge entries name files of campaigns, and checks of them."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
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
"""Pattern of a speedup with its interval in reports."""
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CitingPage:
    """A page that may cite files; a copy of a shipped page without the lines of the shipped one."""

    path: Path
    """File of the page."""
    text: str
    """Text of the page."""
    rendered: bool
    """True if the lab renders the page from records."""


def citing_pages(project: Project) -> Iterator[CitingPage]:
    """Yield the README, the changes, the documentation and the devlog by path: a project has thousands."""
    folders = (project.root / "docs", project.knowledge, project.devlog)
    paths = {path for folder in folders for path in folder.rglob("*.md")}
    paths |= {path for name in ("README.md", "CHANGES.md") if (path := project.root / name).is_file()}
    for path in sorted(paths):
        text = _own_text(project, path, path.read_text(errors="replace"))
        yield CitingPage(path, text, path.is_relative_to(project.devlog))


def cited_files(project: Project, page: CitingPage) -> list[Path]:
    """List the files of campaigns that a page names, by links or by paths from the project's root, each once."""
    return list(dict.fromkeys(_cited(project, page.path, page.text)))


def find_stale_citations(
    project: Project, page: CitingPage, targets: Collection[Path], doubtful: Mapping[Path, str]
) -> Iterator[Stale]:
    """Find the citations of files that do not exist, or that depend on a stale record.

    Args:
        project: the project.
        page: the page that cites.
        targets: files that it cites.
        doubtful: file of each stale record, with its name in messages.
    """
    for target in targets:
        problem = ""
        if not target.exists():
            problem = "which does not exist; restore it, or correct the citation"
        elif not page.rendered and (record := _stale_record(target, doubtful)):
            problem = f"and {record} is stale; correct that first"
        if problem:
            shown_path = project.relative(page.path)
            yield Stale(path=shown_path, message=f"{shown_path} cites {project.relative(target)}, {problem}.")


def find_misquotes(project: Project, page: CitingPage, rendered: Mapping[Path, str]) -> Iterator[Stale]:
    """Find speedups in a section of a written page that are on none of the rendered pages that it cites."""
    shown_path = project.relative(page.path)
    for section in re.split(r"^#+ ", _FENCED.sub("", page.text), flags=re.MULTILINE):
        sources = [path for path in _cited(project, page.path, section) if path in rendered]
        quoted = "".join(rendered[path].replace("\\", "") for path in sources)
        for figure in _FIGURE.findall(section) if sources else ():
            if figure not in quoted:
                names = ", ".join(project.relative(path) for path in sources)
                message = f"{shown_path}: `{figure}` is not in {names}; write the figure that is there."
                yield Stale(path=shown_path, message=message)


def check_entry_evidence(project: Project, page: CitingPage) -> Iterator[Stale]:
    """Find errors in an entry's evidence: a record that changed since it was cited, or a wrong figure.

    `find_stale_citations` finds a missing record, `warpsmith knowledge check` a page that is not an entry.
    """
    shown_path = project.relative(page.path)
    try:
        evidence = entries.read_listed_entry(project, page.path).matter.evidence
    except BadEntry:
        return
    for item in evidence:
        if item.record is None or not (project.root / item.record).is_file() or f"{item.sha256}" not in page.text:
            continue
        if fault := knowledge.evidence_problem(project, item):
            yield Stale(path=shown_path, message=f"{shown_path} {fault}")
        else:
            yield from _check_rows(project, shown_path, page.text, item.record)


def _check_rows(project: Project, shown_path: str, text: str, record: str) -> Iterator[Stale]:
    rows = [line.strip() for line in text.splitlines() if line.startswith("|") and f"| {record} |" in line]
    if not rows:
        return
    expected = [row.render() for row in EvidenceRow.read((project.root / record).read_bytes(), record)]
    for row in rows:
        if row not in expected:
            closest = difflib.get_close_matches(row, expected, n=1, cutoff=0)[0]
            message = f"{shown_path}: the row `{row}` is not what {record} says; write `{closest}`."
            yield Stale(path=shown_path, message=message)


def _cited(project: Project, path: Path, text: str) -> Iterator[Path]:
    """Yield the files of campaigns that a text names; strings, since a project has thousands of pages."""
    folder, root, inside = str(path.parent), str(project.root), f"{project.devlog}/"
    links = [f"{folder}/{link}" if link[0] != "/" else link for link in _LINK.findall(text)]
    devlog, pattern = _devlog_pattern(project)
    if devlog in text:  # the pattern alone takes long
        links += [f"{root}/{link}" for link in pattern.findall(text)]
    for link in links:
        target = os.path.normpath(link)
        if target.startswith(inside) and target.count("/", len(inside)) > 1:
            yield Path(target)


@cache
def _devlog_pattern(project: Project) -> tuple[str, re.Pattern[str]]:
    """Return the devlog's path from the project's root, and the pattern of paths below it."""
    devlog = f"{project.relative(project.devlog)}/"
    return devlog, re.compile(rf"(?<![\w/.]){re.escape(devlog)}[\w./-]+\.\w+")


def _stale_record(target: Path, doubtful: Mapping[Path, str]) -> str:
    """Name of the stale record that a file depends on: its round's, or outside of rounds any of the campaign."""
    for record, name in doubtful.items():
        folder = record.parent if record.name == RECORD else record
        above = folder.parent.parent if record.name == RECORD else folder.parent
        if target == record or target.is_relative_to(folder) or target.parent == above:
            return name
    return ""


def _own_text(project: Project, path: Path, text: str) -> str:
    """Remove the lines of the shipped page of the same path, which describe another project."""
    if not path.is_relative_to(project.knowledge):
        return text
    shipped_pages = [layer / path.relative_to(project.knowledge) for layer in project.knowledge_layers[1:]]
    shipped = {
        line
        for shipped_page in shipped_pages
        if shipped_page.is_file()
        for line in shipped_page.read_text(errors="replace").splitlines()
    }
    return "\n".join(line for line in text.splitlines() if line not in shipped) if shipped else text
