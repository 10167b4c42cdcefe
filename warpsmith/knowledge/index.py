"""Generated pages of a knowledge folder: index.md, the whole catalog, and the front page README.md.

They are a function of the pages, the table of symptoms and the project's records. The heads of symptom pages are
kept up to date with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from warpsmith import files
from warpsmith.core.knowledge import DEMOTED_AFTER, DEMOTED_ON
from warpsmith.core.metrics import METRICS
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import front, hardware, hit_rates, symptom_page
from warpsmith.knowledge.entry import ListedEntry
from warpsmith.knowledge.tables import GENERATED, KINDS, entry_link, links_by_kind, render_table
from warpsmith.project import Project

_LEAD = f"""\
Every entry, metric and device. [{front.NAME}]({front.NAME}) has them by symptom, operator and language."""

_RATES = f"""\
Tried, accepted and gain are computed from this project's closed rounds, on operators and in repositories, and from
trials of whole programs: each counts for every entry that its plan names, baselines for none. The gain is the
median over those that were measured, rolled back or not.
An entry is demoted at {DEMOTED_AFTER} tries on {DEMOTED_ON} operators without one acceptance, until the first;
`warpsmith knowledge show ID` lists its tries."""


def index_path(project: Project) -> Path:
    """Return the path of the index of the project's own knowledge."""
    return project.knowledge / "index.md"


def render_pages(project: Project) -> dict[Path, str]:
    """Render the generated pages; raise BadEntry if a symptom page or a hardware page does not parse.

    A page that is no entry is left out; `warpsmith knowledge check` reports it. A README.md that a person wrote is
    left alone.
    """
    rates = hit_rates.hit_rates_by_entry(project)
    listed, _ = entries.list_entries(project, project.knowledge, rates)
    pages = {index_path(project): _catalog(project, listed)}
    readme = front.front_page_path(project)
    if not readme.is_file() or _text(readme).startswith(GENERATED):
        pages[readme] = front.render_front_page(project, listed)
    return pages


def stale_pages(project: Project) -> list[Path]:
    """Return the generated pages and the symptom pages that are out of date; a folder without pages needs none."""
    if not index_path(project).is_file() and not _has_pages(project):
        return []
    return _changed(symptom_page.render_heads(project) | render_pages(project))


def write_pages(project: Project) -> list[Path]:
    """Write the heads of symptom pages and the generated pages that change; return the paths of the latter."""
    _write_changed(symptom_page.render_heads(project))  # first: the front page shows them
    pages = render_pages(project)
    _write_changed(pages)
    return list(pages)


def update_pages(project: Project) -> list[Path]:
    """Write the pages that a new record, tip or measurement changed, and return them.

    Writes nothing if an entry does not parse: `warpsmith knowledge check` reports it, and saving a record must not
    fail because of it.
    """
    try:
        changed = stale_pages(project)
        if changed:
            write_pages(project)
    except BadEntry:
        return []
    return changed


def _changed(pages: Mapping[Path, str]) -> list[Path]:
    """Return the pages whose file differs from the text."""
    return [page for page, text in pages.items() if not page.is_file() or _text(page) != text]


def _write_changed(pages: Mapping[Path, str]) -> None:
    for page in _changed(pages):
        files.write_file(page, pages[page])


def _has_pages(project: Project) -> bool:
    return bool(entries.entry_paths(project.knowledge) or hardware.hardware_paths(project.knowledge))


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8", errors="replace")


def _catalog(project: Project, listed: list[ListedEntry]) -> str:
    parts = [GENERATED, "# All entries", _LEAD, _RATES]
    for kind, title in KINDS.items():
        parts += [f"## {title}", _entry_table([entry for entry in listed if entry.matter.kind == kind])]
    parts += ["## By metric", _metric_table(listed), "## Hardware", _hardware_table(project)]
    return "\n\n".join(parts) + "\n"


def _entry_table(listed: list[ListedEntry]) -> str:
    rows = [
        (
            entry.matter.category,
            entry_link(entry.matter),
            entry.matter.title,
            entry.matter.language or "shared",
            f"{', '.join(entry.matter.applies_to.targets)}: {', '.join(entry.matter.applies_to.ops)}",
            ", ".join(entry.matter.metrics),
            entry.status,
            *_rate(entry),
            ", ".join(sorted({item.source for item in entry.matter.evidence})),
        )
        for entry in sorted(listed, key=lambda e: (e.matter.category, e.matter.language or "", e.id))
    ]
    rated = ("Tried", "Accepted", "Median gain")
    header = ("Category", "Entry", "Title", "Language", "Applies to", "Metrics", "Status", *rated, "Evidence")
    return render_table(header, rows)


def _rate(entry: ListedEntry) -> tuple[str, str, str]:
    rate = entry.hit_rate
    return (str(rate.tried), str(rate.accepted), rate.gain) if rate else ("-", "-", "-")


def _metric_table(listed: list[ListedEntry]) -> str:
    rows = []
    for metric, meaning in METRICS.items():
        if affecting := [entry for entry in listed if metric in entry.matter.metrics]:
            rows.append((f"`{metric}`", meaning, *links_by_kind(affecting)))
    return render_table(("Metric", "Meaning", *KINDS.values()), rows)


def _hardware_table(project: Project) -> str:
    pages = {
        file: hardware.read_hardware_page(project, file) for file in hardware.hardware_paths(project.knowledge)
    }
    rows = [
        (f"[{target.id}](hardware/{file.name})", target.name, target.kind, target.architecture, target.isa)
        for file, target in pages.items()
    ]
    return render_table(("Target", "Name", "Kind", "Architecture", "ISA"), rows)
