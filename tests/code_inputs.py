"""Code that a file of tests depends on: what it imports, at the top or in functions, and what that imports.

The hash of a file leaves out what cannot change a result: comments on lines of their own, empty lines, and
docstrings where no code reads them. A module's name in a string counts as an import, since processes are started
by such names; a package's name in a string counts as imports of all that is in it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeGuard

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "warpsmith"
TESTS = ROOT / "tests"

RECORD_CODE = {TESTS / f"{name}.py" for name in ("code_inputs", "data_inputs", "lab_record")}
"""What decides which tests run, and changes none of their results."""

_FORK_HOST = TESTS / "fork_host.py"
"""It imports every command, so that forks start at once; what a test runs in a fork is in its own imports."""
_LAZY = PACKAGE / "__init__.py"
"""It imports a public name at its first use; who uses the name imports it."""
_NO_CODE = {"data", "redteam", "redteam_fresh", "__pycache__"}
"""Folders of tests whose files are data."""
_MODULE = re.compile(r"\bwarpsmith(?:\.\w+)+")
_IMPORT = re.compile(r"from (warpsmith[\w.]*) import ([\w, ]+)")
_COMMAND = re.compile(r"-m warpsmith(?![\w.])|\bwarpsmith\.$")
_LONGEST_NAME = 60
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Source(NamedTuple):
    """A Python file as far as it counts for results."""

    sha256: str
    imports: frozenset[Path]
    """Files that it imports, or whose modules it names in strings."""
    fixtures: dict[str, frozenset[Path]]
    """The same for each fixture of a `conftest.py` that only tests that name it have."""
    parameters: dict[str, frozenset[str]]
    """The fixtures that each of these takes; with the empty name, those that other functions take."""
    runs_commands: bool
    """Whether it starts the command `warpsmith`, or a module whose name it makes up: then all code counts."""


@cache
def module_paths() -> dict[str, Path]:
    """Return the file of each module: those of the package and of tools by their dotted name, kits of tests by
    their own, which is unique."""
    paths = {}
    for top in (PACKAGE, ROOT / "tools"):
        for path in top.rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    for path in TESTS.rglob("*.py"):
        if path.stem != "conftest" and not _NO_CODE.intersection(path.relative_to(TESTS).parts):
            paths[path.stem] = path
    return paths


@cache
def code_inputs(path: Path) -> frozenset[Path]:
    """Return a file of tests, what it imports, and the same for its folder's and all higher `conftest.py`."""
    above = [folder / "conftest.py" for folder in path.parents if folder.is_relative_to(TESTS)]
    conftests = [each for each in above if each.is_file()]
    code = with_imports({path, *conftests})
    fixtures = {(each, name): paths for each in conftests for name, paths in read_source(each).fixtures.items()}
    names = {name for each in conftests for name in read_source(each).parameters[""]}
    while wanted := [
        (owner, name)
        for owner, name in fixtures
        if name in names or any(name in _words(each) for each in code if each != owner)
    ]:
        for owner, name in wanted:
            code |= with_imports(set(fixtures.pop((owner, name))))
            names |= read_source(owner).parameters[name]
    return frozenset(code)


def with_imports(files: Iterable[Path]) -> set[Path]:
    """Return files with all that they import, and what that imports in turn."""
    code: set[Path] = set()
    ahead = list(files)
    while ahead:
        each = ahead.pop()
        if each not in code and each not in RECORD_CODE:
            code.add(each)
            ahead += () if each in (_FORK_HOST, _LAZY) else read_source(each).imports
            ahead += (path for path in _beside(each) if path.suffix == ".py")
    return code


@cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", path.read_text())) if path.is_relative_to(TESTS) else frozenset()


def package_data(code: frozenset[Path]) -> frozenset[Path]:
    """Return what lies beside modules of the package and is no code: headers, templates, programs."""
    return frozenset(path for each in code for path in _beside(each) if path.suffix != ".py")


def _beside(path: Path) -> frozenset[Path]:
    """Return the files in a module's folder, and below, that are in no package of their own."""
    return _loose_files(path.parent) if path.is_relative_to(PACKAGE) and path.parent != PACKAGE else frozenset()


@cache
def _loose_files(folder: Path) -> frozenset[Path]:
    files = {path for path in folder.iterdir() if path.is_file() and path.suffix != ".py"}
    for below in folder.iterdir():
        if below.is_dir() and below.name != "__pycache__" and not (below / "__init__.py").is_file():
            files.update(path for path in below.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return frozenset(files)


@cache
def read_source(path: Path) -> Source:
    """Parse a file."""
    data = path.read_bytes()
    tree, lines = ast.parse(data), data.splitlines()
    fixtures = [node for node in tree.body if _is_fixture(node)] if path.name == "conftest.py" else []
    tree.body = [node for node in tree.body if node not in fixtures]
    parts = [_read_part(part, path, lines, b"__doc__" not in data) for part in (tree, *fixtures)]
    kept = set().union(*(part.kept for part in parts))
    text = b"\n".join(
        line if number in kept else line.rstrip()
        for number, line in enumerate(lines)
        if number in kept or (line.strip() and not line.lstrip().startswith(b"#"))
    )
    return Source(
        hashlib.sha256(text).hexdigest(),
        parts[0].imports,
        {node.name: part.imports for node, part in zip(fixtures, parts[1:], strict=True)},
        {"": _parameters(*tree.body), **{node.name: _parameters(node) for node in fixtures}},
        path != _FORK_HOST and any(part.runs_commands for part in parts),
    )


def _is_fixture(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return True for a fixture that only tests that name it have."""
    if not isinstance(node, ast.FunctionDef):
        return False
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return any("fixture" in each and "autouse" not in each and "name=" not in each for each in decorators)


def _parameters(*nodes: ast.stmt) -> frozenset[str]:
    return frozenset(each.arg for node in nodes if isinstance(node, ast.FunctionDef) for each in node.args.args)


class _Part(NamedTuple):
    """A part of a file."""

    imports: frozenset[Path]
    kept: set[int]
    """Numbers of lines that are inside of strings, or begin or end one."""
    runs_commands: bool


def _read_part(tree: ast.AST, path: Path, lines: list[bytes], blanks_docstrings: bool) -> _Part:
    imports: set[Path] = set()
    kept: set[int] = set()
    blank: set[int] = set()
    runs_commands = False
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            ahead += node.orelse
            continue
        for value in vars(node).values():
            if isinstance(value, list):
                ahead += (each for each in value if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST):
                ahead.append(value)
        if isinstance(node, ast.Import):
            imports.update(path for alias in node.names for path in _modules(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports.update(path for alias in node.names for path in _modules(f"{node.module}.{alias.name}"))
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            if node.end_lineno != node.lineno:
                kept.update(range(node.lineno - 1, node.end_lineno or 0))
            if isinstance(node, ast.JoinedStr):
                imports.update(path.parent.rglob("*.py") if "{__name__}" in ast.unparse(node) else ())
            elif isinstance(node.value, str):
                imports |= named_modules(node.value)
                imports |= _named_kits(node.value) if not path.is_relative_to(PACKAGE) else set()
                runs_commands |= "warpsmith" in node.value and bool(_COMMAND.search(node.value))
        elif isinstance(node, ast.List | ast.Tuple | ast.Call):
            items = node.args if isinstance(node, ast.Call) else node.elts
            words = [each.value for each in items if isinstance(each, ast.Constant)]
            runs_commands |= ("-m", "warpsmith") in pairwise(words)
        elif blanks_docstrings and isinstance(node, _DOCUMENTED):
            for statement in node.body:
                blank.update(_blank_docstring(statement, lines))
    return _Part(frozenset(imports), kept - blank, runs_commands)


def _blank_docstring(statement: ast.stmt, lines: list[bytes]) -> range:
    """Blank the lines of a string that is a statement, if nothing else is on them; return their numbers."""
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        return range(0)
    numbers = range(statement.lineno - 1, statement.end_lineno or 0)
    before, after = lines[numbers[0]][: statement.col_offset], lines[numbers[-1]][statement.end_col_offset :]
    if not isinstance(statement.value.value, str) or before.strip() or after.strip():
        return range(0)
    for number in numbers:
        lines[number] = b""
    return numbers


def named_modules(text: str) -> set[Path]:
    """Return the modules that a string names; all of a package if it names that."""
    if "warpsmith" not in text:
        return set()
    paths: set[Path] = set()
    for name in _MODULE.findall(text):
        paths.update(_modules(name))
        place = module_paths().get(name)
        if place is not None and place.name == "__init__.py":
            paths.update(place.parent.rglob("*.py"))
    for module, names in _IMPORT.findall(text):
        for name in re.findall(r"\w+", names):
            paths.update(_modules(f"{module}.{name}"))
    return paths


def _named_kits(text: str) -> set[Path]:
    """Return the kit of tests whose name a string is; the package has such words and means none."""
    kit = module_paths().get(text.removesuffix(".py")) if len(text) < _LONGEST_NAME else None
    return {kit} if kit and kit.is_relative_to(TESTS) and not kit.name.startswith("test_") else set()


def _modules(name: str) -> Iterator[Path]:
    """Yield the files that the import of a dotted name runs."""
    parts = name.split(".")
    if parts[0] not in ("warpsmith", "tools"):
        parts = parts[:1]
    for count in range(1, len(parts) + 1):
        if path := module_paths().get(".".join(parts[:count])):
            yield path
    if parts[0] == "warpsmith" and len(parts) == 2 and (module := _public_names().get(parts[1])):
        yield from _modules(module)


@cache
def _public_names() -> dict[str, str]:
    """Return the module of each name that `warpsmith` itself offers."""
    for node in ast.parse(_LAZY.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULES":
            return dict(ast.literal_eval(node.value))
    raise AssertionError(f"{_LAZY} has no _MODULES")
