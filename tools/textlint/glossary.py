"""Words of the glossary: pages do not use a word that it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.textlint.finding import Finding
from tools.textlint.tree import Tree

GLOSSARY = "docs/glossary.md"
_ROW = re.compile(r"\| (?P<words>\*\*[^|]*) \| [^|]* \| (?P<refused>[^|]*) \|")
_BOLD = re.compile(r"\*\*(.+?)\*\*")


def refused_words(text: str) -> dict[str, str]:
    """Map each word in bold in the glossary's last column to the word for its concept."""
    rows = _ROW.finditer(text)
    return {word: _BOLD.findall(row["words"])[0] for row in rows for word in _BOLD.findall(row["refused"])}


def check_glossary(tree: Tree) -> Iterator[Finding]:
    """Yield every use of a refused word, in the singular or with an s."""
    if GLOSSARY not in tree.files:
        return
    words = refused_words(tree.text(GLOSSARY))
    if not words:
        yield Finding(GLOSSARY, 1, "no row refuses a word", "set words of the last column in bold")
        return
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})s?\b", re.IGNORECASE)
    for page in tree.pages:
        if page.path == GLOSSARY:
            continue
        for line, text in enumerate(tree.text(page.path).splitlines(), 1):
            for word in pattern.findall(text):
                problem = f"`{word}` is no word of the glossary"
                yield Finding(page.path, line, problem, f"write `{words[word.lower()]}`")
