"""Links: every relative link and its anchor leads somewhere, and every page of the knowledge can be reached."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from tools.textlint.finding import Finding
from tools.textlint.page import Page
from tools.textlint.tree import Tree

_KNOWLEDGE = "docs/knowledge/"
_ENTRANCES = (f"{_KNOWLEDGE}README.md", f"{_KNOWLEDGE}index.md")
_ROOT, _SKILL = "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_SKILL_DIR}"
_HOUSE = re.compile(r"(?:warpsmith|tests|tools|skills|agents|hooks|bin|benchmarks)/[\w./-]*\w\.[a-z]+")
"""A path of this repository in inline code."""


def broken(tree: Tree) -> Iterator[Finding]:
    """Relative links without a target."""
    for page in tree.pages:
        for line, target in page.links:
            if wrong := _wrong(tree, page, target):
                yield Finding(page.path, line, wrong, "mend the link")


def paths(tree: Tree) -> Iterator[Finding]:
    """Inline code that names a file of the repository which is not there."""
    for page in tree.pages:
        for line, text in page.codes:
            if _HOUSE.fullmatch(text) and not tree.has(text):
                yield Finding(page.path, line, f"`{text}` does not exist", "write the file's path as it is")


def orphans(tree: Tree) -> Iterator[Finding]:
    """Pages of the knowledge that no chain of links reaches from its README.md or index.md."""
    pages = {page.path: page for page in tree.pages if page.path.startswith(_KNOWLEDGE)}
    reached: set[str] = set()
    due = [path for path in _ENTRANCES if path in pages]
    while due:
        path = due.pop()
        if path in pages and path not in reached:
            reached.add(path)
            due += [_place(path, unquote(urlsplit(target).path)) for _, target in pages[path].links]
    for path in sorted(pages.keys() - reached):
        yield Finding(path, 1, "no link leads here from docs/knowledge/", "link to it from a page that is reached")


def _wrong(tree: Tree, page: Page, link: str) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path, anchor = unquote(parts.path), unquote(parts.fragment)
    place = _place(page.path, path) if path else page.path
    if path.startswith("/") or place.startswith(".."):
        return f"the link to `{path}` leaves the repository"
    if not tree.has(place):
        return f"the link to `{path}` leads nowhere"
    if anchor and place.endswith(".md") and anchor not in tree.page(place).anchors:
        return f"{place} has no heading for `#{anchor}`"
    return None


def _place(page: str, link: str) -> str:
    """Where a link of a page leads, relative to the root."""
    folder = posixpath.dirname(page)
    for variable, value in ((_ROOT, "."), (_SKILL, "/".join(page.split("/")[:2]))):
        if link.startswith(variable):
            return posixpath.normpath(value + link.removeprefix(variable))
    return posixpath.normpath(posixpath.join(folder, link))
