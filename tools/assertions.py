"""Rule for tests: `python -m tools.assertions [PATH ...]` lists assertions on whole sentences and fails on one.

A test asserts the fact: the name, the number, the path, the decisive words. Then a sentence can be written better
without a change to its tests. Layouts of several lines and rows of tables are products of their own, and exempt.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST_WORDS = 10
"""Plain words that a string of an assertion may have."""

_WORD = re.compile(r"[A-Za-z][a-z]*(?:'[a-z]+)?")
_LAYOUT = ("\n", "|")


def count_words(text: str) -> int:
    """Count the plain words of a text: no paths, names with digits, numbers or code."""
    return sum(bool(_WORD.fullmatch(token.strip(".,:;!?()'\"*"))) for token in text.split())


def asserted_texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings in `assert` statements and in the `match` of `pytest.raises`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            parts = [node.test]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "raises":
            parts = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
        else:
            continue
        for part in parts:
            yield from (n for n in ast.walk(part) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def list_sentences(path: Path) -> list[str]:
    """Return a line for each assertion of a file on a whole sentence."""
    lines = []
    for constant in asserted_texts(ast.parse(path.read_text(encoding="utf-8"))):
        text = str(constant.value)
        if not any(mark in text for mark in _LAYOUT) and (count := count_words(text)) > MOST_WORDS:
            remedy = f"assert the fact in at most {MOST_WORDS} words"
            lines.append(f"{path}:{constant.lineno}: the assertion holds a sentence of {count} words; {remedy}.")
    return lines


def main(paths: list[str]) -> int:
    """Print the offences in these files or folders, by default in all tests; return the exit code."""
    roots = [Path(path) for path in paths] or [ROOT / "tests"]
    modules = sorted(path for root in roots for path in (root.rglob("*.py") if root.is_dir() else [root]))
    lines = [line for path in modules for line in list_sentences(path)]
    sys.stdout.writelines(f"{line}\n" for line in (*lines, f"assertions: {len(lines)} in {len(modules)} modules"))
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
