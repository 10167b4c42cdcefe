"""Files of this repository that a file of tests reads, other than the code that it imports.

Tests make paths from `Path(__file__)`, often by a constant: `ROOT / "examples" / name` is any file of `examples`.
Where a path cannot be told, all of the repository counts, and no test of the file is recorded. What the package
reads of the files that ship is in `_PACKAGE_READS`.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from code_inputs import PACKAGE, ROOT, TESTS, code_inputs, module_paths, named_modules, read_source, with_imports

ALWAYS = (ROOT / "constraints.txt", ROOT / "pyproject.toml")
PROJECT = tuple(ROOT / name for name in ("kernels", "devlog", "docs/knowledge"))
"""Folders of this repository as a project."""
_PACKAGE_READS = {
    "warpsmith/lab/machine/hardware.py": ("docs/knowledge/hardware/*.md",),
    "warpsmith/lab/machine/measurement_store.py": ("docs/knowledge/hardware/measured/cpu-*.json",),
    "warpsmith/execution/lab_copy.py": ("warpsmith", "docs/knowledge"),
    "warpsmith/lab/gate_tests/cases.py": (),  # tests name `CORPUS`
    "warpsmith/packages.py": (),
    "warpsmith/project.py": (),
}
"""What modules read of the files that ship; any other module that names them may read all of the project. What
was measured of a GPU is read on that machine alone, and no test on a GPU is recorded."""
_HOSTS = (TESTS / "fork_host.py", TESTS / "program_host.py")
"""Kits that start what a test asks for, in the folder that it asks for."""
_NO_COMMANDS = ("warpsmith/ledger/git.py",)
"""Modules that `git` gets the name of the package from."""
_SHIPPED = re.compile(r"\bSHIPPED\b|\bshipped_project\b|\bfind_project\(\)")
_CONSTANTS = {"SHIPPED": ROOT, "CORPUS": TESTS / "redteam"}
"""Paths that tests import from the package."""
_OF_ONE_OPERATOR = (
    "tests/lab/gate_tests/test_redteam.py::test_the_gate_holds[",
    "tests/kernels/test_versions.py::",
)
"""Tests of one operator, with which the brackets of their names begin."""
_BY_OPERATOR = (ROOT / "kernels", ROOT / "devlog", TESTS / "redteam")
"""Folders with a folder for each operator."""


class UnknownPath(Exception):
    """A test may read any file of this repository."""


@cache
def data_inputs(path: Path) -> frozenset[Path]:
    """Return the files and folders that a file of tests reads.

    Raises:
        UnknownPath: that cannot be told.
    """
    inputs = set(ALWAYS)
    for each in code_inputs(path):
        name = each.relative_to(ROOT).as_posix()
        if each in _HOSTS:
            continue
        if read_source(each).runs_commands and name not in _NO_COMMANDS:
            raise UnknownPath(f"{name} runs the command")
        if each.is_relative_to(TESTS):
            inputs.update(map(_widen, _paths(each)))
        elif name in _PACKAGE_READS:
            inputs.update(place for pattern in _PACKAGE_READS[name] for place in ROOT.glob(pattern))
        elif _reads_project(each):
            inputs.update(PROJECT)
    for folder in _BY_OPERATOR:
        operators = [each.name for each in inputs if each.parent == folder]
        inputs.update(folder / name for operator in operators for name in _with_siblings(operator))
    return frozenset(each for each in inputs if each.exists())


@cache
def _reads_project(path: Path) -> bool:
    return path.is_relative_to(PACKAGE) and bool(_SHIPPED.search(path.read_text()))


def _widen(path: Path) -> Path:
    """Return the folder of a Python file, or of its operator: a test may find its other files from one."""
    for folder in _BY_OPERATOR:
        if path != folder and path.is_relative_to(folder):
            return folder / path.relative_to(folder).parts[0]
    return path.parent if path.suffix == ".py" and path.parent not in (ROOT, TESTS) else path


def inputs_of_test(name: str) -> frozenset[Path]:
    """Return what one test reads: of a single operator and those that it names, where that is all."""
    inputs = data_inputs(ROOT / name.partition("::")[0])
    operator = name.partition("[")[2].partition("/")[0]
    if not name.startswith(_OF_ONE_OPERATOR) or operator not in _operators():
        return inputs
    own = {folder / each for folder in _BY_OPERATOR for each in _with_siblings(operator)}
    return frozenset(each for path in inputs for each in (own if path in _BY_OPERATOR else (path,)))


@cache
def data_imports(places: frozenset[Path]) -> frozenset[Path]:
    """Return the code that Python files among data import: definitions, versions, programs."""
    files = (path for place in places for path in (place.rglob("*.py") if place.is_dir() else (place,)))
    texts = (path.read_text(errors="replace") for path in files if path.suffix == ".py")
    return frozenset(with_imports(module for text in texts for module in named_modules(text)))


@cache
def _operators() -> frozenset[str]:
    return frozenset(path.name for folder in _BY_OPERATOR for path in folder.iterdir() if path.is_dir())


@cache
def _with_siblings(operator: str) -> frozenset[str]:
    """Return an operator and those that its files may reach: as a string, or a part of a path."""
    names: set[str] = set()
    ahead = [operator]
    while ahead:
        each = ahead.pop()
        if each not in names:
            names.add(each)
            for folder in (ROOT / "kernels", TESTS / "redteam"):
                for path in (folder / each).rglob("*.py"):
                    ahead += _operators().intersection(re.findall(r"""(?<=["'/])\w+(?=["'/])""", path.read_text()))
    return frozenset(names)


class _Place(NamedTuple):
    """A path that an expression has, or the folder below which it is."""

    path: Path
    exact: bool = True


@cache
def _paths(path: Path) -> frozenset[Path]:
    """Return the paths of this repository that a kit or a test makes; raises UnknownPath."""
    reader = _PathReader(path)
    reader.visit(ast.parse(path.read_bytes()))
    return frozenset(reader.paths)


@cache
def _constants(path: Path) -> dict[str, _Place | None]:
    """Return the names that a kit gives to paths."""
    reader = _PathReader(path)
    reader.read_constants(ast.parse(path.read_bytes()))
    return reader.constants


class _PathReader(ast.NodeVisitor):
    """Collects the paths that a file makes from where it is."""

    def __init__(self, path: Path) -> None:
        self._file = path
        self.paths: set[Path] = set()
        self.constants: dict[str, _Place | None] = {name: _Place(place) for name, place in _CONSTANTS.items()}

    def visit(self, node: ast.AST) -> None:
        if (place := self._evaluate(node)) is None:
            super().visit(node)
        elif place.path in (ROOT, TESTS) or not place.path.is_relative_to(ROOT):
            raise self._unknown(node)
        else:
            self.paths.add(place.path)

    def visit_Module(self, node: ast.Module) -> None:
        self.read_constants(node)
        for statement in node.body:
            if not (isinstance(statement, ast.Assign) and self._evaluate(statement.value)):
                self.visit(statement)
            elif not self._is_constant(statement):
                self.visit(statement.value)

    def read_constants(self, module: ast.Module) -> None:
        """Take in the paths that have names; their uses count."""
        for node in module.body:
            if isinstance(node, ast.ImportFrom):
                kit = module_paths().get(node.module or "")
                if kit is not None and kit.is_relative_to(TESTS):
                    self.constants |= _constants(kit)
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
                place = self._evaluate(node.value) if self._is_constant(node) else None
                self.constants |= dict.fromkeys(names, place)

    def _is_constant(self, node: ast.Assign) -> bool:
        place = self._evaluate(node.value)
        return place is not None and place.exact and all(isinstance(target, ast.Name) for target in node.targets)

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in ("find_project", "shipped_project") and (not node.args or self._evaluate(node.args[0])):
            self.paths.update(PROJECT)
            return
        if called in ("relative_to", "is_relative_to", "at_level", "getLogger"):
            self.visit(node.func)
        elif called in ("cwd", "getcwd"):
            raise self._unknown(node)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id == "__file__":
            raise self._unknown(node)

    def visit_arg(self, node: ast.arg) -> None:
        if node.arg == "fork_host" and self._file.name != "conftest.py":
            raise self._unknown(node)  # it runs commands

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == "__file__" and ast.unparse(node.value) not in ("torch", "triton", "os"):
            raise self._unknown(node)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            if node.value == "warpsmith":
                raise self._unknown(node)
            if re.fullmatch(r"\w[\w./-]*/[\w./-]+", node.value) and (ROOT / node.value).exists():
                self.paths.add(ROOT / node.value)

    def _unknown(self, node: ast.AST) -> UnknownPath:
        return UnknownPath(f"{self._file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}")

    def _evaluate(self, node: ast.AST) -> _Place | None:
        """Return the place of a path expression; None if it is none, or none of this repository."""
        match node:
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Name(id="__file__")]):
                return _Place(self._file)
            case ast.Call(func=ast.Name(id="Path"), args=[ast.Attribute(ast.Name(id="warpsmith"), "__file__")]):
                return _Place(PACKAGE / "__init__.py")
            case ast.Call(func=ast.Attribute(value, "resolve"), args=[]):
                return self._evaluate(value)
            case ast.Call(func=ast.Attribute(value, "with_name"), args=[ast.Constant(str(name))]):
                place = self._evaluate(value)
                return place and _Place(place.path.with_name(name), place.exact)
            case ast.Attribute(value, "parent"):
                return self._above(self._evaluate(value), 0, node)
            case ast.Subscript(ast.Attribute(value, "parents"), ast.Constant(int(number))):
                return self._above(self._evaluate(value), number, node)
            case ast.BinOp(left, ast.Div(), right):
                place = self._evaluate(left)
                if place and place.exact and isinstance(right, ast.Constant) and isinstance(right.value, str):
                    return _Place(place.path / right.value)
                return place and _Place(place.path, exact=False)
            case ast.Name(id=name):
                return self.constants.get(name)
        return None

    def _above(self, place: _Place | None, number: int, node: ast.AST) -> _Place | None:
        if place is not None and not place.exact:
            raise self._unknown(node)
        return place and _Place(place.path.parents[number])
