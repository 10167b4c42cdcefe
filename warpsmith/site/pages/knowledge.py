"""Pages of knowledge: all entries with facets, each entry with its tries, and symptoms as a decision path."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from warpsmith.core.knowledge import HitRate, SymptomRow, Try
from warpsmith.core.metrics import METRICS
from warpsmith.errors import BadEntry
from warpsmith.knowledge.entry import ListedEntry
from warpsmith.knowledge.symptom_page import SymptomPage
from warpsmith.site import addresses
from warpsmith.site.citation import Citation, Quote, derive_from
from warpsmith.site.context import SiteContext
from warpsmith.site.markdown import plain_text, render_markdown, render_text
from warpsmith.site.markup import slug
from warpsmith.site.page import SearchText, SitePage, build_page

FACETS = ("symptom", "counter", "operator", "language", "chip", "kind")
"""Properties by which entries are chosen."""

QUESTIONS = {
    "memory": "Memory is busy, or moves more than it must",
    "latency": "Nothing is busy enough",
    "compute": "Arithmetic or instructions are busy",
    "launch": "The device waits for the host",
    "": "The results, the sizes or the benchmark look wrong",
}
"""First step of the path: what is seen, by the limit that the profiler's rules find; empty where no rule looks."""


@dataclass(frozen=True)
class TryRow:
    """A try of an entry, with its record."""

    attempt: Try
    """The try."""
    gain: Quote | None
    """Its gain with the record; None if the record's file is gone."""
    address: str | None
    """Description of the round or trial in the site."""


def knowledge_page(context: SiteContext) -> SitePage:
    """Return the list of all entries, which facets narrow down."""
    listed = list(context.catalog.entries.values())
    values = {entry.id: _facet_values(context, entry) for entry in listed}
    options = {
        facet: sorted({value for rows_found in values.values() for value in rows_found[facet]}, key=str.casefold)
        for facet in FACETS
    }
    return build_page(
        "knowledge",
        addresses.KNOWLEDGE,
        title="Knowledge",
        entries=listed,
        values=values,
        options=options,
        facets=FACETS,
        when={
            entry.id: render_text(
                entry.when, context.addresses.surroundings(addresses.KNOWLEDGE, _folder(context, entry))
            )
            for entry in listed
        },
        entry_address=addresses.entry_address,
        skipped=context.catalog.skipped,
    )


def entry_pages(context: SiteContext) -> list[SitePage]:
    """Return the page of each entry."""
    return [_entry_page(context, listed) for listed in context.catalog.entries.values()]


def symptoms_page(context: SiteContext) -> SitePage:
    """Return the decision path from what is seen to what to try."""
    rows = [(slug(row.title), row, _rules(context, row)) for row in context.symptoms]
    groups: dict[str, list[tuple[str, SymptomRow, list[SymptomPage]]]] = {name: [] for name in QUESTIONS.values()}
    for anchor, row, rules in rows:
        groups[QUESTIONS[_limit(context, row, rules)]].append((anchor, row, rules))
    return build_page(
        "symptoms",
        addresses.SYMPTOMS,
        title="Symptoms",
        found_by=[_row_text(anchor, row) for anchor, row, _ in rows],
        groups=[(slug(question), question, rows_found) for question, rows_found in groups.items() if rows_found],
        metrics=METRICS,
        entries=context.catalog.entries,
        entry_address=addresses.entry_address,
        symptom_address=addresses.symptom_address,
    )


def symptom_rule_pages(context: SiteContext) -> list[SitePage]:
    """Return the page of each symptom that the classifier detects."""
    return [_symptom_rule_page(context, page) for page in context.symptom_pages.values()]


def _entry_page(context: SiteContext, listed: ListedEntry) -> SitePage:
    address = addresses.entry_address(listed.id)
    folder = _folder(context, listed)
    problem = ""
    try:
        sections = context.catalog.get(listed.id).sections
    except BadEntry as error:
        # The page is shown as it is: a fault of form takes nothing from what it says.
        context.contents.note(error)
        problem, sections = str(error), {"Text": listed.body}
    page = context.contents.archive.cite(context.project.root / listed.path)  # of figures from public documents
    around = context.addresses.surroundings(address, folder, page)
    tries = [_try_row(context, attempt) for attempt in (listed.hit_rate.tries if listed.hit_rate else ())]
    records = [row.gain.citation for row in tries if row.gain]
    return build_page(
        "entry",
        address,
        title=listed.matter.title,
        section=addresses.KNOWLEDGE,
        found_by=(_entry_text(context, listed),),
        entry=listed,
        problem=problem,
        sections=[(name, slug(name), render_markdown(text, around)) for name, text in sections.items()],
        rate=listed.hit_rate,
        share=derive_from(_share_text(listed.hit_rate), records, "share_interval") if listed.hit_rate else None,
        median_gain=derive_from(listed.hit_rate.median_gain, records, "median_gain") if listed.hit_rate else None,
        tries=tries,
        evidence=[(item, context.contents.archive.find(item.record or "")) for item in listed.matter.evidence],
        related=_related(context, listed),
        symptoms=[(slug(row.title), row) for row in context.symptoms if listed.id in row.entries],
        metrics=METRICS,
        entry_address=addresses.entry_address,
        entry_path=page.path,
    )


def _share_text(rate: HitRate) -> str | None:
    """Return the share of accepted tries with its interval: `67 % [21 %, 94 %]`; None without tries."""
    interval = rate.share_interval
    if interval is None:
        return None
    return f"{100 * rate.accepted / rate.tried:.0f} % [{100 * interval.low:.0f} %, {100 * interval.high:.0f} %]"


def _try_row(context: SiteContext, attempt: Try) -> TryRow:
    citation = context.contents.archive.find(attempt.record)
    if citation is None:
        return TryRow(attempt, None, None)
    return TryRow(attempt, _quote_gain(context, citation, attempt), try_address(attempt.record))


def _quote_gain(context: SiteContext, citation: Citation, attempt: Try) -> Quote:
    """Return the gain of a try: as the record states it, or as computed from its comparisons."""
    record = json.loads(context.contents.archive.contents[citation.copy])
    stated = (record.get("outcome") or {}).get("gain")
    if attempt.gain is not None and stated == attempt.gain:
        return Quote(attempt.gain, citation, "/outcome/gain")
    return citation.derive(attempt.gain, "gain of a try")


def try_address(record: str) -> str | None:
    """Return the address of a round or trial by the path of its record."""
    parts = Path(record).parts
    if len(parts) < 5:
        return None
    owner, kind, number = parts[-4:-1]
    if kind == "trials":
        return addresses.program_address(owner)
    if "repo" in parts:
        return addresses.repository_address(owner)
    return f"{addresses.campaign_address(owner)}#{addresses.round_anchor(owner, int(number))}"


def _related(context: SiteContext, listed: ListedEntry) -> list[ListedEntry]:
    """Return the entries that a page names, and those that name it."""
    others = context.catalog.entries
    linked = [id for id in others if id != listed.id and f"{id}.md" in listed.body]
    linking = [other.id for other in others.values() if other.id != listed.id and f"{listed.id}.md" in other.body]
    return [others[id] for id in sorted({*linked, *linking})]


def _facet_values(context: SiteContext, entry: ListedEntry) -> dict[str, tuple[str, ...]]:
    matter = entry.matter
    return {
        "symptom": tuple(row.title for row in context.symptoms if entry.id in row.entries),
        "counter": matter.metrics,
        "operator": matter.applies_to.ops,
        "language": (matter.language or "all languages",),
        "chip": matter.applies_to.targets,
        "kind": (matter.kind, *((entry.status,) if entry.status != "active" else ())),
    }


def _folder(context: SiteContext, entry: ListedEntry) -> Path:
    return (context.project.root / entry.path).parent


def _rules(context: SiteContext, row: SymptomRow) -> list[SymptomPage]:
    """Return the pages of the classifier's rules that look at a metric of a row and lead to one of its entries."""
    return [
        page
        for page in context.symptom_pages.values()
        if page.matter.metric in row.shows and set(page.matter.entries) & set(row.entries)
    ]


def _limit(context: SiteContext, row: SymptomRow, rules: list[SymptomPage]) -> str:
    """Return the limit that the rules for a row find; without any, that of rules that lead to its first entry."""
    first = row.optimizations[:1]
    leading = rules or [
        page for page in context.symptom_pages.values() if set(first) & set(page.matter.entries[:1])
    ]
    limits = Counter(_bottleneck(page) for page in leading).most_common(1)
    return limits[0][0] if limits else ""


def _bottleneck(page: SymptomPage) -> str:
    """Return the limit that a symptom is about; one at its limit is about the unit whose counter shows it."""
    matter = page.matter
    if matter.bottleneck != "at-the-limit":
        return matter.bottleneck
    return "memory" if matter.metric.startswith("dram") else "compute"


def _symptom_rule_page(context: SiteContext, page: SymptomPage) -> SitePage:
    address = addresses.symptom_address(page.matter.id)
    folder = (context.project.root / page.path).parent
    source = context.contents.archive.cite(context.project.root / page.path)
    around = context.addresses.surroundings(address, folder, source)
    matter = page.matter
    return build_page(
        "symptom",
        address,
        title=matter.title,
        section=addresses.SYMPTOMS,
        found_by=(
            SearchText(
                matter.title,
                address,
                "symptom",
                matter.threshold,
                f"symptom {matter.id.replace('-', ' ')} {matter.metric} {matter.bottleneck}",
                "",
                " ".join(plain_text(text) for text in page.sections.values()),
            ),
        ),
        matter=matter,
        meaning=METRICS[matter.metric],
        sections=[(name, slug(name), render_markdown(text, around)) for name, text in page.sections.items()],
        entries=[context.catalog.entries[id] for id in matter.entries if id in context.catalog.entries],
        entry_address=addresses.entry_address,
        rows=[(slug(row.title), row) for row in context.symptoms if page in _rules(context, row)],
    )


def _row_text(anchor: str, row: SymptomRow) -> SearchText:
    return SearchText(
        row.title,
        f"{addresses.SYMPTOMS}#{anchor}",
        "symptom",
        row.means,
        f"symptom {' '.join(row.also)}",
        row.means,
    )


def _entry_text(context: SiteContext, listed: ListedEntry) -> SearchText:
    """Return an entry as a search finds it; its symptoms' names are names of it, as in `knowledge search`."""
    matter = listed.matter
    names = " ".join(" ".join((row.title, *row.also)) for row in context.symptoms if listed.id in row.entries)
    tags = (*matter.metrics, matter.category, matter.kind, matter.language or "", *matter.applies_to.targets)
    return SearchText(
        matter.title,
        addresses.entry_address(listed.id),
        matter.kind,
        plain_text(listed.when),
        f"{listed.id.replace('-', ' ')} {' '.join(tags)} {' '.join(matter.applies_to.ops)} {names}",
        plain_text(listed.applies),
        plain_text(listed.body.replace(listed.applies, "", 1)),
    )
