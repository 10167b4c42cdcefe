"""Import hook that runs a program from its source alone, and some of its files with the content of a copy.

Cached bytecode is not trusted: an edit of the same length within a second would run as the text before it.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from warpsmith.lab.operator.source_module import SourceLoader


class _CopyLoader(SourceLoader):
    """Loader of a file with the text of its copy."""

    def __init__(self, name: str, path: str, copy: Path) -> None:
        super().__init__(name, path)
        self._copy = copy

    def get_data(self, path: str) -> bytes:
        return self._copy.read_bytes() if path == self.path else super().get_data(path)


class OriginalsFinder(MetaPathFinder):
    """Finder of the source files in a program's folder and of those with a copy; others are found as usual."""

    def __init__(self, folder: Path, copies: Mapping[Path, Path]) -> None:
        self._folder = folder.resolve()
        self._copies = {path.resolve(): copy for path, copy in copies.items()}

    def install(self) -> None:
        """Install this finder as the first one, and have tracebacks, inspect and torch.compile read the copies."""
        for path, copy in self._copies.items():
            text = copy.read_text(errors="replace")
            linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of the program or of a file with a copy, else None."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        file = Path(spec.origin)
        if file.resolve() not in self._copies and not self._is_own(file.resolve()):
            return None
        return self.spec(name, file, spec.submodule_search_locations)

    def spec(self, name: str, path: Path, subfolders: Sequence[str] | None = None) -> ModuleSpec | None:
        """Return the spec that runs the source of a Python file or of its copy; None for another file."""
        if path.suffix != ".py":
            return None
        copy = self._copies.get(path.resolve())
        loader = SourceLoader(name, str(path)) if copy is None else _CopyLoader(name, str(path), copy)
        return spec_from_file_location(
            name, path, loader=loader, submodule_search_locations=None if subfolders is None else list(subfolders)
        )

    def _is_own(self, file: Path) -> bool:
        """Tell whether a file belongs to the program, and not to an environment in its folder."""
        return file.is_relative_to(self._folder) and "site-packages" not in file.parts
