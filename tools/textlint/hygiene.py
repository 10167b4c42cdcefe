"""Text that must not be in the repository: paths of one machine, numbers of a tracker, invisible characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.textlint.finding import Finding, convert_error
from tools.textlint.tree import Tree
from warpsmith.errors import BadEntry
from warpsmith.knowledge.page import refuse_untrusted

_MACHINE = re.compile(r"(?<![\w./~$}>-])/(?:work|root|workspace|tmp/bash_jobs|home/[a-z]\w*|Users/\w+)(?:/|\b)")
_NUMBER = re.compile(r"(?<!\w)(?:issue|PR|pull request) #\d+", re.IGNORECASE)
_RULES = (
    (_MACHINE, "is a path of one machine", "write a relative path, or /path/to/..."),
    (_NUMBER, "refers to a tracker", "describe the subject, or link to it"),
)


def check_private_references(tree: Tree) -> Iterator[Finding]:
    """Yield paths of a machine and numbers of a tracker, in Markdown and Python."""
    for path in tree.files:
        if path.endswith((".md", ".py")):
            for number, line in enumerate(tree.text(path).splitlines(), 1):
                for pattern, problem, fix in _RULES:
                    if match := pattern.search(line):
                        yield Finding(path, number, f"`{match[0]}` {problem}", fix)


def check_invisible_characters(tree: Tree) -> Iterator[Finding]:
    """Yield characters that a model reads but a person does not see."""
    for page in tree.pages:
        try:
            refuse_untrusted(page.text, page.path)
        except BadEntry as error:
            yield convert_error(page.path, error)
