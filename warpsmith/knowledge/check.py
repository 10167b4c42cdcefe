"""Whether the project's knowledge holds together: form, evidence, hardware, symptoms, links, generated pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.knowledge import Evidence
from warpsmith.core.problem import problem
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import evidence, hardware, index, links, page, symptom_page, symptoms
from warpsmith.knowledge.catalog import Catalog
from warpsmith.knowledge.entry import Entry
from warpsmith.knowledge.links import Finding
from warpsmith.project import Project


class Problem(Model):
    """One thing that is wrong with the knowledge."""

    path: str
    """The page."""
    message: str
    """What is wrong and what to do, in one sentence that names the page."""


class Problems(Model):
    """All that a check found."""

    problems: tuple[Problem, ...]
    """In order of path; empty: all is well."""


def check(project: Project) -> list[Problem]:
    """Everything that is wrong with the project's own layer; what ships was checked where it was made."""
    parts = (
        _entries(project),
        _hardware(project),
        _symptoms(project),
        _symptom_pages(project),
        links.broken(project),
        _index(project),
    )
    found = {finding for part in parts for finding in part}
    return [Problem(path=path, message=message) for path, message in sorted(found)]


def _entries(project: Project) -> Iterator[Finding]:
    shipped = _shipped_evidence(project)
    seen: dict[str, str] = {}
    for path in entries.paths(project.knowledge):
        shown = project.relative(path)
        try:
            entry = entries.read(project, path)
        except BadEntry as error:
            yield shown, str(error)
            continue
        if entry.id in seen:
            yield shown, f"{shown} has the id of {seen[entry.id]}; rename one of them."
        seen[entry.id] = shown
        for message in entry_problems(entry):
            yield shown, message
        for item in entry.matter.evidence:
            if item not in shipped and (wrong := unsound(project, item)):
                yield shown, f"{shown} {wrong}"


def entry_problems(entry: Entry) -> Iterator[str]:
    """What an entry's own text gets wrong beyond its form, one sentence each."""
    shown, matter = entry.path, entry.matter
    section = entry.sections["Evidence"]
    said, true = evidence.source_types(section), {item.source for item in matter.evidence}
    if said != true:
        line = f"Source type: {' and '.join(sorted(true))}"
        yield f"{shown}: the Evidence section must begin with the line `{line}`, as the front matter has it."
    if row := evidence.unsourced_row(section):
        yield f"{shown}: the evidence row `{row}` names no source; add it in a `Source` column."
    for metric in matter.metrics:
        if not re.search(rf"(?<!\w){metric}(?!\w)", entry.sections["Affected metrics"]):
            yield f"{shown}: `Affected metrics` does not mention `{metric}`; say how it moves."
    for name, text in entry.sections.items():
        if html := page.raw_html(text):
            yield f"{shown}: `## {name}` holds the raw HTML `{html}`, which hides text; put code in backticks."
    for item in matter.evidence:
        if item.url and urlsplit(item.url).scheme not in ("http", "https"):
            yield f"{shown}: the evidence's url `{item.url}` is no web address; begin it with https://."


def unsound(project: Project, item: Evidence) -> str | None:
    """Why a piece of evidence does not stand, as the rest of a sentence about what cites it; None: it does."""
    if item.record is None:
        return None
    if PurePosixPath(item.record).is_absolute() or ".." in PurePosixPath(item.record).parts:
        return f"cites `{item.record}`, which is not a path inside the project; give it relative to the root."
    path = project.root / item.record
    if not path.is_file():
        return f"cites {item.record}, which does not exist; restore the record or remove the evidence."
    if files.sha256(path) != item.sha256:
        return f"is stale: {item.record} has changed since it was cited; restore it, or cite a new round."
    try:
        evidence.EvidenceRow.read(path.read_bytes(), item.record)
    except ValidationError as error:
        return f"cites {item.record}, which is no round record ({problem(error)}); cite a record.json."
    return None


def _shipped_evidence(project: Project) -> set[Evidence]:
    """Evidence of shipped entries: an own copy of one cites records of the project that it shipped from."""
    layers = project.knowledge_layers[1:]
    paths = [path for layer in layers for path in entries.paths(layer)]
    return {item for path in paths for item in entries.read(project, path).matter.evidence}


def _hardware(project: Project) -> Iterator[Finding]:
    for path in hardware.paths(project.knowledge):
        shown = project.relative(path)
        try:
            target = hardware.read(project, path)
        except BadEntry as error:
            yield shown, str(error)
            continue
        for figure in hardware.figures_off_line(target, path.read_text(encoding="utf-8")):
            yield shown, f"{shown}: write `{figure}` as one line `  {figure}: {{value: ..., unit: ...}}`."
        for record in target.measured:
            if not (path.parent / record).is_file():
                yield shown, f"{shown} lists the measurement {record}, which does not exist; remove it."


def _symptoms(project: Project) -> Iterator[Finding]:
    """What the project's own table gets wrong; a folder without a table needs none."""
    path = project.knowledge / symptoms.FILE
    shown = project.relative(path)
    try:
        told = symptoms.of(project, project.knowledge)
    except BadEntry as error:
        yield shown, str(error)
        return
    try:
        known = Catalog.load(project).entries
    except BadEntry:
        return  # the page that does not read is a problem of its own
    for symptom in told:
        for kind, ids in (("optimization", symptom.optimizations), ("anti-pattern", symptom.anti_patterns)):
            for id in ids:
                if id not in known or known[id].matter.kind != kind:
                    yield shown, f"{shown}: `{symptom.title}` names `{id}`, which is no {kind}; mend or remove it."


def _symptom_pages(project: Project) -> Iterator[Finding]:
    """What pages of symptoms get wrong: their form, entries that there are not, or that their text leaves out."""
    try:
        known = Catalog.load(project).entries
    except BadEntry:
        return  # the page that does not read is a problem of its own
    for path in symptom_page.paths(project.knowledge):
        shown = project.relative(path)
        try:
            read = symptom_page.read(project, path)
        except BadEntry as error:
            yield shown, str(error)
            continue
        for id in read.matter.entries:
            if id not in known:
                yield shown, f"{shown}: `{id}` is no entry; mend or remove it."
            elif f"/{id}.md)" not in read.sections["What to do"]:
                yield shown, f"{shown}: `## What to do` does not link to `{id}`; say what it is for."


def _index(project: Project) -> Iterator[Finding]:
    try:
        for path in index.stale(project):
            shown = project.relative(path)
            yield shown, f"{shown} is out of date; run `warpsmith knowledge index`."
        yield from links.orphans(project)
    except BadEntry:
        return  # the page that does not read is a problem of its own
