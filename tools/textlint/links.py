"""Links and paths: every relative link, its anchor and every path in inline code must exist."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from tools.textlint.finding import Finding
from tools.textlint.page import MarkdownPage
from tools.textlint.tree import Tree

_ROOT, _SKILL = "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_SKILL_DIR}"
_REPOSITORY_PATH = re.compile(r"(?:warpsmith|tests|tools|skills|agents|hooks|bin|benchmarks)/[\w./-]*\w\.[a-z]+")


def check_links(tree: Tree) -> Iterator[Finding]:
    """Yield relative links without a target."""
    for page in tree.pages:
        for line, target in page.links:
            if problem := _problem(tree, page, target):
                yield Finding(page.path, line, problem, "fix the link")


def check_code_paths(tree: Tree) -> Iterator[Finding]:
    """Yield paths of the repository in inline code that do not exist."""
    for page in tree.pages:
        for line, text in page.codes:
            if _REPOSITORY_PATH.fullmatch(text) and not tree.has(text):
                yield Finding(page.path, line, f"`{text}` does not exist", "correct the path")


def _problem(tree: Tree, page: MarkdownPage, link: str) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path, anchor = unquote(parts.path), unquote(parts.fragment)
    target = _target(page.path, path) if path else page.path
    if path.startswith("/") or target.startswith(".."):
        return f"the link to `{path}` leaves the repository"
    if not tree.has(target):
        return f"the link to `{path}` leads nowhere"
    if anchor and target.endswith(".md") and anchor not in tree.page(target).anchors:
        return f"{target} has no heading for `#{anchor}`"
    return None


def _target(page: str, link: str) -> str:
    """Return the target of a page's link, relative to the root."""
    folder = posixpath.dirname(page)
    for variable, value in ((_ROOT, "."), (_SKILL, "/".join(page.split("/")[:2]))):
        if link.startswith(variable):
            return posixpath.normpath(value + link.removeprefix(variable))
    return posixpath.normpath(posixpath.join(folder, link))
