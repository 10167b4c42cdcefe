"""Which of a repository's files a Python file needs: what it imports, found by reading, never by importing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath


class PythonSources:
    """The Python files of a repository, and the folders that its imports start from."""

    def __init__(self, root: Path, listing: Collection[str]) -> None:
        self._root = root
        self._files = {path for path in listing if path.endswith(".py")}
        self._roots = sorted({_root_of(path, self._files) for path in self._files}, key=len)

    def root_of(self, path: str) -> str:
        """The folder that the imports of a file's package start from: `src`, `.`."""
        return _root_of(path, self._files)

    def needs(self, start: str) -> tuple[list[str], set[str]]:
        """What a file needs, itself included, and what of that lies outside of the repository.

        A package's `__init__.py` is needed only where a name is imported from it; else an empty one will do.

        Returns:
            Paths in the repository, and the names of packages that are neither in it nor in Python itself.
        """
        found: dict[str, None] = {}
        outside: set[str] = set()
        todo = [start]
        while todo:
            path = todo.pop()
            if path in found:
                continue
            found[path] = None
            for name, names in self._imports(path):
                inside = self._resolve(path, name, names)
                todo += inside
                if not inside:
                    outside.add(name.partition(".")[0])
        return list(found), outside - sys.stdlib_module_names

    def beside(self, paths: Iterable[str]) -> list[str]:
        """What pytest and the packages of these files take up by themselves: `conftest.py` and `__init__.py`."""
        folders = dict.fromkeys(folder for path in paths for folder in PurePosixPath(path).parents)
        names = (str(folder / name) for folder in folders for name in ("__init__.py", "conftest.py"))
        return [name for name in names if name in self._files]

    def _imports(self, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Every import anywhere in a file: the module's full name, and the names taken from it."""
        try:
            tree = ast.parse((self._root / path).read_text(encoding="utf-8", errors="replace"))
        except SyntaxError:
            return
        package = PurePosixPath(path).relative_to(self.root_of(path)).parent.parts
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, ()) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + 1] if node.level else ()
                module = ".".join((*above, *([node.module] if node.module else [])))
                yield module, tuple(alias.name for alias in node.names)

    def _resolve(self, path: str, module: str, names: tuple[str, ...]) -> list[str]:
        """The repository's files that an import names: submodules where they are some, else the module."""
        beside = str(PurePosixPath(path).parent)
        for root in dict.fromkeys((self.root_of(path), *self._roots, beside)):
            stem = "/".join(part for part in ("" if root == "." else root, *module.split(".")) if part)
            submodules = [self._module(f"{stem}/{name}") for name in names]
            own = self._module(stem)
            found = [one for one in submodules if one]
            if own and (not names or len(found) < len(names)):
                found.append(own)
            if found:
                return found
        return []

    def _module(self, stem: str) -> str | None:
        return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in self._files), None)


def _root_of(path: str, files: Collection[str]) -> str:
    """The nearest folder above that is no package."""
    folder = PurePosixPath(path).parent
    while f"{folder}/__init__.py" in files:
        folder = folder.parent
    return str(folder)
