"""Links between the pages of the knowledge: each leads somewhere, and every page is reached from the front."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from warpsmith.errors import BadEntry
from warpsmith.knowledge import index, page
from warpsmith.project import Project

Finding = tuple[str, str]
"""Path and message."""


def broken(project: Project) -> Iterator[Finding]:
    """Relative links of every page that lead nowhere."""
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


def orphans(project: Project) -> Iterator[Finding]:
    """Files that neither generated page links to, nor to their folder; none where no page is generated.

    Raises:
        BadEntry: a page does not read.
    """
    if not index.path(project).is_file():
        return
    pages = index.render(project)
    reached = {(project.knowledge / link).resolve() for text in pages.values() for link in _relative_links(text)}
    for path in _files(project.knowledge):
        if path not in pages and reached.isdisjoint((path.resolve(), path.parent.resolve())):
            shown = project.relative(path)
            yield shown, f"{shown} is linked from neither generated page; move it to where its kind belongs."


def _files(folder: Path) -> Iterator[Path]:
    """Files at any depth, in order, save for hidden ones."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


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
