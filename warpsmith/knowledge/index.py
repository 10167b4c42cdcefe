"""The knowledge folder's generated pages: index.md, the whole catalog, and the front page beside it.

Both are a function of the pages, the table of symptoms and the records of the project.
"""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.core.knowledge import DEMOTED_AFTER, DEMOTED_ON
from warpsmith.core.metrics import METRICS
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import front, hardware, hit_rates
from warpsmith.knowledge.entry import Listed
from warpsmith.knowledge.tables import GENERATED, KINDS, by_kind, link, table
from warpsmith.project import Project

_LEAD = f"""\
Every entry, metric and device. [{front.NAME}]({front.NAME}) has them by symptom, operator and language."""

_RATES = f"""\
Tried, accepted and gain are computed from this project's closed rounds, on operators and in repositories, and from
trials of whole programs: each counts for every entry that its plan names, baselines for none. The gain is the
median over those that were measured, rolled back or not.
An entry is demoted at {DEMOTED_AFTER} tries on {DEMOTED_ON} operators without one acceptance, until the first;
`warpsmith knowledge show ID` lists its tries."""


def path(project: Project) -> Path:
    """Where the index of the project's own knowledge is."""
    return project.knowledge / "index.md"


def render(project: Project) -> dict[Path, str]:
    """The generated pages; raises BadEntry where a page of the project's own layer does not read.

    A README.md that somebody wrote by hand is theirs, and none is rendered.
    """
    rates = hit_rates.by_entry(project)
    found = [entries.listed(project, file, rates) for file in entries.paths(project.knowledge)]
    pages = {path(project): _catalog(project, found)}
    readme = front.path(project)
    if not readme.is_file() or _text(readme).startswith(GENERATED):
        pages[readme] = front.render(project, found)
    return pages


def stale(project: Project) -> list[Path]:
    """Generated pages that differ from what would be rendered; a folder without pages needs none."""
    if not path(project).is_file() and not _has_pages(project):
        return []
    pages = render(project)
    return [page for page, text in pages.items() if not page.is_file() or _text(page) != text]


def refresh(project: Project) -> list[Path]:
    """Render the pages, write those that change, and return all."""
    pages = render(project)
    for page, text in pages.items():
        if not page.is_file() or _text(page) != text:
            files.write(page, text)
    return list(pages)


def renew(project: Project) -> list[Path]:
    """Write the pages that a new record, tip or measurement changed, and return them; none where an entry does not
    read: `warpsmith knowledge check` names it, and who keeps a record must not fail of it."""
    try:
        found = stale(project)
        if found:
            refresh(project)
    except BadEntry:
        return []
    return found


def _has_pages(project: Project) -> bool:
    return bool(entries.paths(project.knowledge) or hardware.paths(project.knowledge))


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8", errors="replace")


def _catalog(project: Project, found: list[Listed]) -> str:
    parts = [GENERATED, "# All entries", _LEAD, _RATES]
    for kind, title in KINDS.items():
        parts += [f"## {title}", _entry_table([entry for entry in found if entry.matter.kind == kind])]
    parts += ["## By metric", _metric_table(found), "## Hardware", _hardware_table(project)]
    return "\n\n".join(parts) + "\n"


def _entry_table(found: list[Listed]) -> str:
    rows = [
        (
            entry.matter.category,
            link(entry.matter),
            entry.matter.title,
            entry.matter.language or "shared",
            f"{', '.join(entry.matter.applies_to.targets)}: {', '.join(entry.matter.applies_to.ops)}",
            ", ".join(entry.matter.metrics),
            entry.status,
            *_rate(entry),
            ", ".join(sorted({item.source for item in entry.matter.evidence})),
        )
        for entry in sorted(found, key=lambda e: (e.matter.category, e.matter.language or "", e.id))
    ]
    rated = ("Tried", "Accepted", "Median gain")
    header = ("Category", "Entry", "Title", "Language", "Applies to", "Metrics", "Status", *rated, "Evidence")
    return table(header, rows)


def _rate(entry: Listed) -> tuple[str, str, str]:
    rate = entry.hit_rate
    return (str(rate.tried), str(rate.accepted), rate.gain) if rate else ("-", "-", "-")


def _metric_table(found: list[Listed]) -> str:
    rows = []
    for metric, meaning in METRICS.items():
        if moving := [entry for entry in found if metric in entry.matter.metrics]:
            rows.append((f"`{metric}`", meaning, *by_kind(moving)))
    return table(("Metric", "Meaning", *KINDS.values()), rows)


def _hardware_table(project: Project) -> str:
    pages = {file: hardware.read(project, file) for file in hardware.paths(project.knowledge)}
    rows = [
        (f"[{target.id}](hardware/{file.name})", target.name, target.kind, target.architecture, target.isa)
        for file, target in pages.items()
    ]
    return table(("Target", "Name", "Kind", "Architecture", "ISA"), rows)
