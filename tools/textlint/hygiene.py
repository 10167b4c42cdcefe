"""What belongs to the machine or the day on which a text was written, and not into the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.textlint.finding import Finding, of_error
from tools.textlint.tree import Tree
from warpsmith.errors import BadEntry
from warpsmith.knowledge import page as pages

_MACHINE = re.compile(r"(?<![\w./~$}>-])/(?:work|root|workspace|tmp/bash_jobs|home/[a-z]\w*|Users/\w+)(?:/|\b)")
_NUMBER = re.compile(r"(?<!\w)(?:issue|PR|pull request) #\d+", re.IGNORECASE)
_RULES = (
    (_MACHINE, "is a path of one machine", "write a relative path, or /path/to/..."),
    (_NUMBER, "points to a tracker", "say what it is about, or link to it"),
)


def strays(tree: Tree) -> Iterator[Finding]:
    """Paths of a machine and numbers of a tracker, in Markdown and Python."""
    for path in tree.files:
        if path.endswith((".md", ".py")):
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                for pattern, wrong, fix in _RULES:
                    if found := pattern.search(line):
                        yield Finding(path, number, f"`{found[0]}` {wrong}", fix)


def unseen(tree: Tree) -> Iterator[Finding]:
    """Characters that a model reads and a person does not see."""
    for page in tree.pages:
        try:
            pages.refuse_untrusted(page.text, page.path)
        except BadEntry as error:
            yield of_error(page.path, error)
