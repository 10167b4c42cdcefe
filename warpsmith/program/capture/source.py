"""The user's own files as syntax trees, and what a name in them stands for. Nothing is imported or run."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from warpsmith.errors import Misuse

Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Source:
    """One file."""

    path: Path
    """Absolute."""
    tree: ast.Module
    """Its syntax tree."""
    package: str
    """Dotted name of the package that it is in, for relative imports; empty: none."""
    lines: list[str]
    """Its text."""

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Module-level functions."""
        return {node.name: Function(self, node) for node in _top(self.tree) if isinstance(node, Def)}

    @cached_property
    def classes(self) -> dict[str, Class]:
        """Module-level classes."""
        return {node.name: Class(self, node) for node in _top(self.tree) if isinstance(node, ast.ClassDef)}

    @cached_property
    def assigned(self) -> dict[str, list[tuple[ast.expr, tuple[int, ...]]]]:
        """Module-level names with the expressions assigned to them, and the place in each where it is a tuple."""
        found: dict[str, list[tuple[ast.expr, tuple[int, ...]]]] = {}
        for node in _top(self.tree):
            for target, value in _assignments(node):
                for name, place in names_in(target):
                    found.setdefault(name, []).append((value, place))
        return found

    @cached_property
    def imports(self) -> dict[str, str]:
        """Names that an import anywhere in the file binds, with what they stand for: `F`: torch.nn.functional."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.split(".")[0]
                    found[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node.module or "", node.level)
                found |= {
                    alias.asname or alias.name: f"{base}.{alias.name}".lstrip(".")
                    for alias in node.names
                    if alias.name != "*"
                }
        return found

    @cached_property
    def stars(self) -> list[str]:
        """Modules of which everything is imported."""
        return [
            self._absolute(node.module or "", node.level)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        ]

    def _absolute(self, module: str, level: int) -> str:
        if not level:
            return module
        parts = self.package.split(".") if self.package else []
        return ".".join(filter(None, [*parts[: len(parts) - level + 1], module]))


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method of the user's."""

    source: Source
    node: Def
    owner: Class | None = None

    @property
    def name(self) -> str:
        """`train_step`, `Block.forward`."""
        return f"{self.owner.node.name}.{self.node.name}" if self.owner else self.node.name

    @property
    def parameters(self) -> list[ast.arg]:
        """Its parameters that may be given by position, `self` left out."""
        every = [*self.node.args.posonlyargs, *self.node.args.args]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in self.node.decorator_list)
        return every[1:] if self.owner and not static else every

    @cached_property
    def globals(self) -> set[str]:
        """Names that it declares global or nonlocal."""
        return {
            name
            for node in ast.walk(self.node)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }


@dataclass(eq=False)
class Class:
    """A class of the user's."""

    source: Source
    node: ast.ClassDef
    bases: list[Class | str] = field(default_factory=list)
    """Classes of the user's, and dotted names of others."""

    @cached_property
    def own(self) -> dict[str, Function]:
        """Its own methods."""
        return {node.name: Function(self.source, node, self) for node in self.node.body if isinstance(node, Def)}

    def method(self, name: str) -> Function | None:
        """A method, its own or a base's."""
        if name in self.own:
            return self.own[name]
        found = (base.method(name) for base in self.bases if isinstance(base, Class))
        return next(filter(None, found), None)

    def derives(self, *prefixes: str) -> bool:
        """Whether a base that is not the user's begins like one of these."""
        return any(
            base.derives(*prefixes) if isinstance(base, Class) else base.startswith(prefixes)
            for base in self.bases
        )


Symbol = Function | Class | Source | str
"""What a dotted name stands for; a string is the full name of something that is not the user's."""


class Sources:
    """The files below a folder, each parsed when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._loaded: dict[Path, Source] = {}

    def __iter__(self) -> Iterator[Source]:
        """Those that were needed so far."""
        return iter(list(self._loaded.values()))

    def load(self, path: Path) -> Source:
        """One file.

        Raises:
            Misuse: it is no Python, or cannot be read.
        """
        path = path.resolve()
        if path not in self._loaded:
            try:
                text = path.read_text()
                tree = ast.parse(text)
            except OSError as error:
                raise Misuse(f"{path} cannot be read: {error.strerror}.") from error
            except (SyntaxError, UnicodeDecodeError, ValueError) as error:
                line = getattr(error, "lineno", None)
                raise Misuse(f"{path}{f':{line}' if line else ''} is no Python: {error}") from error
            source = Source(path, tree, self._package(path), text.splitlines())
            self._loaded[path] = source
            for cls in source.classes.values():
                cls.bases.extend(self._bases(source, cls))
        return self._loaded[path]

    def module(self, dotted: str) -> Source | None:
        """The file of a module of the user's; None: it is not below the folder."""
        place = self.folder.joinpath(*dotted.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file() and "site-packages" not in path.parts:
                with contextlib.suppress(Misuse):  # a file that Python could not import is not run either
                    return self.load(path)
        return None

    def symbol(self, source: Source, expression: ast.expr) -> Symbol | None:
        """What a name or a chain of attributes stands for; None: a variable, or no such chain."""
        if isinstance(expression, ast.Attribute):
            base = self.symbol(source, expression.value)
            return None if base is None else self._member(base, expression.attr)
        if not isinstance(expression, ast.Name):
            return None
        return self._named(source, expression.id)

    def _named(self, source: Source, name: str) -> Symbol | None:
        own = source.functions.get(name) or source.classes.get(name)
        if own:
            return own
        if name in source.assigned:
            return None
        if name in source.imports:
            return self._dotted(source.imports[name])
        for star in source.stars:
            other = self.module(star)
            found = other and other is not source and self._named(other, name)
            if found:
                return found
        return None

    def variable(self, source: Source, name: str) -> tuple[Source, str] | None:
        """The file and name of a module-level variable, through imports; None: there is none."""
        if name in source.assigned:
            return source, name
        base, _, last = source.imports.get(name, "").rpartition(".")
        other = self.module(base) if base else None
        return self.variable(other, last) if other and other is not source else None

    def _member(self, base: Symbol, name: str) -> Symbol | None:
        if isinstance(base, str):
            return self._dotted(f"{base}.{name}")
        if isinstance(base, Source):
            return self._named(base, name)
        return base.method(name) if isinstance(base, Class) else None

    def _dotted(self, full: str) -> Symbol | None:
        own = self.module(full)
        if own:
            return own
        base, _, last = full.rpartition(".")
        holder = self.module(base) if base else None
        return self._named(holder, last) if holder else _canonical(full)

    def _bases(self, source: Source, cls: Class) -> Iterator[Class | str]:
        for base in cls.node.bases:
            found = self.symbol(source, base)
            if isinstance(found, Class | str):
                yield found

    def _package(self, path: Path) -> str:
        parts = path.parent.relative_to(self.folder).parts if path.is_relative_to(self.folder) else ()
        return ".".join(parts)


def names_in(target: ast.expr, place: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names that an assignment's target binds, each with its place in a tuple."""
    if isinstance(target, ast.Name):
        yield target.id, place
    elif isinstance(target, ast.Tuple | ast.List):
        for number, part in enumerate(target.elts):
            yield from names_in(part, (*place, number))
    elif isinstance(target, ast.Starred):
        yield from names_in(target.value, place)


def _top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of a module, those in its ifs, trys and withs among them."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt)]
            handlers = [
                s for part in ast.iter_child_nodes(node) if isinstance(part, ast.ExceptHandler) for s in part.body
            ]
            waiting[:0] = inner + handlers


def _assignments(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
    elif isinstance(node, ast.AnnAssign) and node.value:
        yield node.target, node.value


def _canonical(full: str) -> str:
    """One name where a library has several."""
    for alias, name in (("torch.functional.", "torch."), ("torch.cuda.amp.", "torch.amp.")):
        if full.startswith(alias):
            return name + full.removeprefix(alias)
    return full
