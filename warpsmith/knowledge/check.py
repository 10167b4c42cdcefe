"""Checks of the project's knowledge: form, evidence, hardware, symptoms, links and generated pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.knowledge import Evidence
from warpsmith.core.text import describe_error
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import evidence, hardware, index, links, page, prior_art, symptom_page
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.entry import Entry
from warpsmith.knowledge.links import PathMessage
from warpsmith.knowledge.search import symptoms, synonyms
from warpsmith.project import Project


class KnowledgeProblem(Model):
    """One problem in the knowledge."""

    path: str
    """Path of the page."""
    message: str
    """The problem and its cure, in one sentence that names the page."""


class KnowledgeProblems(Model):
    """All problems of a check."""

    problems: tuple[KnowledgeProblem, ...]
    """Problems in order of path; empty if there are none."""


def check_knowledge(project: Project) -> list[KnowledgeProblem]:
    """Return the problems in the project's own layer; the shipped layer was checked where it was made."""
    parts = (
        _entries(project),
        _hardware(project),
        _symptoms(project),
        _prior_art(project),
        _symptom_pages(project),
        links.broken_links(project),
        _index(project),
    )
    messages = {item for part in parts for item in part}
    return [KnowledgeProblem(path=path, message=message) for path, message in sorted(messages)]


def _entries(project: Project) -> Iterator[PathMessage]:
    shipped = _shipped_evidence(project)
    paths: dict[str, str] = {}
    for path in entries.entry_paths(project.knowledge):
        label = project.relative(path)
        try:
            entry = entries.read_entry(project, path)
        except BadEntry as error:
            yield label, str(error)
            continue
        if entry.id in paths:
            yield label, f"{label} has the id of {paths[entry.id]}; rename one of them."
        paths[entry.id] = label
        for message in entry_problems(entry):
            yield label, message
        for item in entry.matter.evidence:
            if item not in shipped and (problem := evidence_problem(project, item)):
                yield label, f"{label} {problem}"


def entry_problems(entry: Entry) -> Iterator[str]:
    """Yield the problems of an entry's text beyond its form, one sentence each."""
    label, matter = entry.path, entry.matter
    section = entry.sections["Evidence"]
    stated, actual = evidence.source_types(section), {item.source for item in matter.evidence}
    if stated != actual:
        line = f"Source type: {' and '.join(sorted(actual))}"
        yield f"{label}: the Evidence section must begin with the line `{line}`, as the front matter has it."
    if row := evidence.find_unsourced_row(section):
        yield f"{label}: the evidence row `{row}` has no source; add it in a `Source` column."
    for metric in matter.metrics:
        if not re.search(rf"(?<!\w){metric}(?!\w)", entry.sections["Affected metrics"]):
            yield f"{label}: `Affected metrics` does not mention `{metric}`; explain how it changes."
    for name, text in entry.sections.items():
        if html := page.find_raw_html(text):
            yield f"{label}: `## {name}` contains the raw HTML `{html}`, which hides text; put code in backticks."
    for item in matter.evidence:
        if item.url and urlsplit(item.url).scheme not in ("http", "https"):
            yield f"{label}: the evidence's url `{item.url}` is not a web address; begin it with https://."


def evidence_problem(project: Project, item: Evidence) -> str | None:
    """Return why a piece of evidence is not valid, as the rest
    of a sentence about the page that cites it; None if it is."""
    if item.record is None:
        return None
    if PurePosixPath(item.record).is_absolute() or ".." in PurePosixPath(item.record).parts:
        return f"cites `{item.record}`, which is not a path inside the project; give it relative to the root."
    path = project.root / item.record
    if not path.is_file():
        return f"cites {item.record}, which does not exist; restore the record or remove the evidence."
    if files.file_sha256(path) != item.sha256:
        return f"is stale: {item.record} has changed since it was cited; restore it, or cite a new round."
    try:
        evidence.EvidenceRow.read(path.read_bytes(), item.record)
    except ValidationError as error:
        return f"cites {item.record}, which is not a round record ({describe_error(error)}); cite a record.json."
    return None


def _shipped_evidence(project: Project) -> set[Evidence]:
    """Return the evidence of shipped entries: a copy of one cites records of the project that it shipped from."""
    layers = project.knowledge_layers[1:]
    paths = [path for layer in layers for path in entries.entry_paths(layer)]
    return {item for path in paths for item in entries.read_entry(project, path).matter.evidence}


def _hardware(project: Project) -> Iterator[PathMessage]:
    for path in hardware.hardware_paths(project.knowledge):
        label = project.relative(path)
        try:
            target = hardware.read_hardware_page(project, path)
        except BadEntry as error:
            yield label, str(error)
            continue
        for figure in hardware.misformatted_figures(target, path.read_text(encoding="utf-8")):
            yield label, f"{label}: write `{figure}` as one line `  {figure}: {{value: ..., unit: ...}}`."
        for record in target.measured:
            if not (path.parent / record).is_file():
                yield label, f"{label} lists the measurement {record}, which does not exist; remove it."


def _symptoms(project: Project) -> Iterator[PathMessage]:
    """Yield the problems of the project's own tables of symptoms and synonyms; a folder needs neither."""
    path = project.knowledge / symptoms.FILE
    label = project.relative(path)
    try:
        rows = symptoms.read_symptom_table(project, project.knowledge)
        synonyms.read_synonyms(project, project.knowledge)
    except BadEntry as error:
        yield label, str(error)
        return
    catalog = Catalog.load(project)
    if catalog.skipped:
        return  # the page that is no entry is reported by another check
    for symptom in rows:
        for kind, ids in (("optimization", symptom.optimizations), ("anti-pattern", symptom.anti_patterns)):
            for id in ids:
                if id not in catalog.entries or catalog.entries[id].matter.kind != kind:
                    problem = f"`{symptom.title}` names `{id}`, which is not an {kind}; correct or remove it."
                    yield label, f"{label}: {problem}"


def _prior_art(project: Project) -> Iterator[PathMessage]:
    """Yield the problems of the project's own table of prior art; a folder needs none."""
    path = project.knowledge / prior_art.FILE
    label = project.relative(path)
    try:
        rows = prior_art.read_prior_art(project, project.knowledge)
    except BadEntry as error:
        yield label, str(error)
        return
    for family, count in Counter(row.family for row in rows).items():
        if count > 1:
            yield label, f"{label}: `{family}` has {count} rows; merge them."
    for row in rows:
        if row.until <= row.checked:
            yield label, f"{label}: `{row.family}` ends on {row.until}, before it was checked; correct `until`."


def _symptom_pages(project: Project) -> Iterator[PathMessage]:
    """Yield the problems of symptom pages: form, unknown or unlinked entries, and unexplained numbers."""
    catalog = Catalog.load(project)
    if catalog.skipped:
        return  # the page that is no entry is reported by another check
    for path in symptom_page.symptom_paths(project.knowledge):
        label = project.relative(path)
        try:
            parsed = symptom_page.read_symptom_page(project, path)
        except BadEntry as error:
            yield label, str(error)
            continue
        for id in parsed.matter.entries:
            if id not in catalog.entries:
                yield label, f"{label}: `{id}` is not an entry; correct or remove it."
            elif f"/{id}.md)" not in parsed.sections["What to do"]:
                yield label, f"{label}: `## What to do` does not link to `{id}`; add it with its purpose."
        for number in symptom_page.unexplained_numbers(parsed):
            yield label, f"{label}: `## Why this threshold` does not mention {number}; give the reason for it."


def _index(project: Project) -> Iterator[PathMessage]:
    if entries.list_entries(project, project.knowledge)[1]:
        return  # the page that is no entry is reported by another check
    try:
        for path in index.stale_pages(project):
            label = project.relative(path)
            yield label, f"{label} is out of date; run `warpsmith knowledge index`."
        yield from links.unlinked_files(project)
    except BadEntry:
        return  # the page that does not parse is reported by another check
