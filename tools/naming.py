"""Naming rules of the package: `python -m tools.naming [PATH ...]` lists every offence and fails on one.

A name is a noun or a verb that says what it holds or does. No class name stands twice, and no two modules have a
public function of the same name. A docstring, that of a field too, opens with a verb or a noun.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKED = ("warpsmith", "tools")

VAGUE = frozenset(
    """
    found told said given kept made taken put gone done wanted asked heard meant seen held shown known named
    here there now apart beside what how why which whose who whatever such
    one ones this that these those its his hers them their ours theirs mine yours thing things stuff place
    """.split()  # noqa: SIM905 - a paragraph of words reads better than a list of strings
)
"""Participles, pronouns and adverbs that say nothing of what a variable or a function holds."""

OPENINGS = re.compile(r"(What|Whether|Where|How|Why|Of|By|Which|Whose|Whom|When|Who)\b")
"""Words that a docstring may not open with."""

LEAST_WORDS = 3

PROTOCOLS = {
    "main": "the entry point of a process",
    "register": "a command group adds its commands to the command line",
    "answer": "a hook's reply to an event",
}
"""Names of module functions that several modules share, each because one caller finds it by name."""

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Offence:
    """One broken rule, at a line of a file."""

    path: Path
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        """Format the offence as a compiler would."""
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass(frozen=True)
class SourceFile:
    """One parsed file."""

    path: Path
    tree: ast.Module


def parse_sources(root: Path) -> list[SourceFile]:
    """Parse every checked Python file under `root`, in the order of their paths."""
    paths = [path for folder in CHECKED for path in sorted((root / folder).rglob("*.py"))]
    return [SourceFile(path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def list_offences(sources: list[SourceFile]) -> list[Offence]:
    """List every offence in the files, sorted by file and line."""
    rules = (_vague_names, _docstring_faults, _repeated_classes, _repeated_functions)
    return sorted(
        (offence for rule in rules for offence in rule(sources)), key=lambda item: (item.path, item.line)
    )


def _vague_names(sources: Iterable[SourceFile]) -> Iterator[Offence]:
    for source in sources:
        fields = _class_fields(source.tree)
        for node in ast.walk(source.tree):
            if isinstance(node, Function) and node.name.strip("_") in VAGUE:
                message = f"`{node.name}` does not say what the function returns or does"
                yield Offence(source.path, node.lineno, "name", message)
            for name, line in _bound_names(node):
                if name.strip("_") in VAGUE and (name, line) not in fields:
                    yield Offence(source.path, line, "name", f"`{name}` does not say what it holds")


def _class_fields(tree: ast.Module) -> set[tuple[str, int]]:
    """Collect the annotated fields of classes: records on disk hold them by these names, which do not change."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    targets = (item.target for body in bodies for item in body if isinstance(item, ast.AnnAssign))
    return {(target.id, target.lineno) for target in targets if isinstance(target, ast.Name)}


def _bound_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node binds, each with its line."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name, node.lineno
        case ast.arg(arg=name) | ast.alias(asname=str(name)):
            yield name, node.lineno
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, node.lineno
        case _:
            return


def _docstring_faults(sources: Iterable[SourceFile]) -> Iterator[Offence]:
    for source in sources:
        for node in ast.walk(source.tree):
            text = ast.get_docstring(node) if isinstance(node, Documented) else None
            line = getattr(node, "lineno", 1)
            if text and len(text.split()) < LEAST_WORDS:
                yield Offence(source.path, line, "docstring", f"`{text}` says too little")
            for docstring, at in ((text or "", line), *_field_docstrings(node)):
                if OPENINGS.match(docstring):
                    message = f"opens with `{docstring.split()[0]}`; begin with a verb or a noun"
                    yield Offence(source.path, at, "docstring", message)


def _field_docstrings(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the string below each assignment in the body of a module or class, with its line."""
    if not isinstance(node, (ast.Module, ast.ClassDef)):
        return
    for assignment, statement in itertools.pairwise(node.body):
        match assignment, statement:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(text))):
                yield text.strip(), statement.lineno


def _repeated_classes(sources: Iterable[SourceFile]) -> Iterator[Offence]:
    sites: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                sites[node.name.strip("_")].append((source.path, node.lineno))
    yield from _repeated(sites, "class")


def _repeated_functions(sources: Iterable[SourceFile]) -> Iterator[Offence]:
    sites: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, Function) and not node.name.startswith("_") and node.name not in PROTOCOLS:
                sites[node.name].append((source.path, node.lineno))
    yield from _repeated(sites, "function")


def _repeated(sites: dict[str, list[tuple[Path, int]]], kind: str) -> Iterator[Offence]:
    for name, lines in sites.items():
        for path, line in lines if len(lines) > 1 else ():
            others = ", ".join(sorted({str(other) for other, _ in lines} - {str(path)})) or "the same file"
            yield Offence(path, line, kind, f"`{name}` is also in {others}")


def main(paths: list[str]) -> int:
    """Print the offences under the paths, by default all of them, and return the exit code."""
    offences = list_offences(parse_sources(ROOT))
    offences = [item for item in offences if not paths or any(item.path.is_relative_to(path) for path in paths)]
    sys.stdout.writelines(f"{item}\n" for item in offences)
    sys.stdout.write(f"{len(offences)} offences against the naming rules\n" if offences else "")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
