"""Files of a repository that a Python file imports, found by parsing, never by importing."""

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
        """Folder that the imports of a file's package start from, such as `src` or `.`."""
        return _root_of(path, self._files)

    def needs(self, start: str) -> tuple[list[str], set[str]]:
        """Find the files that a file imports, directly or not, and the packages from outside of the repository.

        A package's `__init__.py` counts only if a name is imported from it; otherwise an empty one is enough.

        Returns:
            Paths in the repository, the file itself included, and names of packages that are neither there nor in
            Python's standard library.
        """
        needed: dict[str, None] = {}
        outside: set[str] = set()
        pending = [start]
        while pending:
            path = pending.pop()
            if path in needed:
                continue
            needed[path] = None
            for name, names in self._imports(path):
                inside = self._resolve(path, name, names)
                pending += inside
                if not inside:
                    outside.add(name.partition(".")[0])
        return list(needed), outside - sys.stdlib_module_names

    def implicit_files(self, paths: Iterable[str]) -> list[str]:
        """List the `conftest.py` and `__init__.py` files that pytest and Python load along with these files."""
        folders = dict.fromkeys(folder for path in paths for folder in PurePosixPath(path).parents)
        names = (str(folder / name) for folder in folders for name in ("__init__.py", "conftest.py"))
        return [name for name in names if name in self._files]

    def _imports(self, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield every import in a file: the module's full name, and the names imported from it."""
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
        """List the repository's files that an import names: its submodules, else the module."""
        folder = str(PurePosixPath(path).parent)
        for root in dict.fromkeys((self.root_of(path), *self._roots, folder)):
            stem = "/".join(part for part in ("" if root == "." else root, *module.split(".")) if part)
            submodules = [self._module(f"{stem}/{name}") for name in names]
            own = self._module(stem)
            files = [file for file in submodules if file]
            if own and (not names or len(files) < len(names)):
                files.append(own)
            if files:
                return files
        return []

    def _module(self, stem: str) -> str | None:
        return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in self._files), None)


def _root_of(path: str, files: Collection[str]) -> str:
    """Find the nearest folder above a file that is not a package."""
    folder = PurePosixPath(path).parent
    while f"{folder}/__init__.py" in files:
        folder = folder.parent
    return str(folder)
