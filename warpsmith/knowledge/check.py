"""Whether the project's knowledge holds together: form, links, evidence, hardware pages, index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.knowledge import Evidence
from warpsmith.errors import BadEntry
from warpsmith.knowledge import entry as entries
from warpsmith.knowledge import evidence, hardware, index, page
from warpsmith.knowledge.entry import Entry
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
    found = {*_entries(project), *_hardware(project), *_links(project), *_index(project)}
    return [Problem(path=path, message=message) for path, message in sorted(found)]


Finding = tuple[str, str]
"""Path and message."""


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
            if item not in shipped and (problem := _evidence(project, item)):
                yield shown, f"{shown} {problem}"


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


def _shipped_evidence(project: Project) -> set[Evidence]:
    """Evidence of shipped entries: an own copy of one cites records of the project that it shipped from."""
    layers = project.knowledge_layers[1:]
    paths = [path for layer in layers for path in entries.paths(layer)]
    return {item for path in paths for item in entries.read(project, path).matter.evidence}


def _evidence(project: Project, item: Evidence) -> str | None:
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
        RoundRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        return f"cites {item.record}, which is no round record ({page.first_error(error)}); cite a record.json."
    return None


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


def _links(project: Project) -> Iterator[Finding]:
    for path in sorted(project.knowledge.rglob("*.md")):
        shown = project.relative(path)
        try:
            text = page.text_of(path, shown)
        except BadEntry as error:
            yield shown, str(error)
            continue
        for link in _relative_links(text):
            if not _resolves(project, path, link):
                yield shown, f"{shown} links to `{link}`, which does not exist; mend the link."


def _relative_links(text: str) -> Iterator[str]:
    for token in page.inlines(text):
        link = str(token.attrs.get("href") or token.attrs.get("src") or "")
        parts = urlsplit(link)
        if parts.path and not parts.scheme and not parts.netloc:
            yield unquote(parts.path)


def _resolves(project: Project, path: Path, link: str) -> bool:
    """Whether a link leads somewhere: beside the page, or to the shipped page of that place."""
    if link.startswith("/"):
        return False
    inside = path.parent.relative_to(project.knowledge)
    return any((layer / inside / link).exists() for layer in project.knowledge_layers)


def _index(project: Project) -> Iterator[Finding]:
    shown = project.relative(index.path(project))
    try:
        if index.stale(project):
            yield shown, f"{shown} is out of date; run `warpsmith knowledge index`."
    except BadEntry:
        return  # the page that does not read is a problem of its own
