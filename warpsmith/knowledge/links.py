"""Link checks over the knowledge pages: no broken links, and every page reachable from the front page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from warpsmith.errors import BadEntry
from warpsmith.knowledge import index, page
from warpsmith.project import Project

PathMessage = tuple[str, str]
"""Path of a page and a message about it."""


def broken_links(project: Project) -> Iterator[PathMessage]:
    """Yield a message for every relative link that does not resolve."""
    for path in sorted(project.knowledge.rglob("*.md")):
        label = project.relative(path)
        try:
            text = page.read_text(path, label)
        except BadEntry as error:
            yield label, str(error)
            continue
        for link in _relative_links(text):
            if not _resolves(project, path, link):
                yield label, f"{label} links to `{link}`, which does not exist; fix the link."


def unlinked_files(project: Project) -> Iterator[PathMessage]:
    """Yield a message for every file that no generated page links to, directly or through its folder.

    Yields nothing if no page is generated.

    Raises:
        BadEntry: a page does not parse.
    """
    if not index.index_path(project).is_file():
        return
    pages = index.render_pages(project)
    reached = {(project.knowledge / link).resolve() for text in pages.values() for link in _relative_links(text)}
    for path in _files(project.knowledge):
        if path not in pages and reached.isdisjoint((path.resolve(), path.parent.resolve())):
            label = project.relative(path)
            yield label, f"{label} is not linked from a generated page; move it to the folder of its kind."


def _files(folder: Path) -> Iterator[Path]:
    """Yield files at any depth, sorted, except hidden ones."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _relative_links(text: str) -> Iterator[str]:
    for token in page.iter_inline_tokens(text):
        link = str(token.attrs.get("href") or token.attrs.get("src") or "")
        parts = urlsplit(link)
        if parts.path and not parts.scheme and not parts.netloc:
            yield unquote(parts.path)


def _resolves(project: Project, path: Path, link: str) -> bool:
    """Return whether a link resolves, next to the page or in a shipped layer."""
    if link.startswith("/"):
        return False
    inside = path.parent.relative_to(project.knowledge)
    return any((layer / inside / link).exists() for layer in project.knowledge_layers)
