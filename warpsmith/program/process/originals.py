"""Import hook that runs some files of a program with the content of a copy, under their own names."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class _CopyLoader(SourceFileLoader):
    """Loader of a file with the text of its copy; it reads and writes no compiled file."""

    def __init__(self, name: str, path: str, copy: Path) -> None:
        super().__init__(name, path)
        self._copy = copy

    def get_data(self, path: str) -> bytes:
        return self._copy.read_bytes() if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> Mapping[str, float]:
        raise OSError("compiled files belong to another text")


class OriginalsFinder(MetaPathFinder):
    """Finder of the files of a mapping; other modules are found as usual."""

    def __init__(self, copies: Mapping[Path, Path]) -> None:
        self._copies = {path.resolve(): copy for path, copy in copies.items()}

    def install(self) -> None:
        """Install this finder as the first one, and have tracebacks, inspect and torch.compile read the copies."""
        for path, copy in self._copies.items():
            text = copy.read_text(errors="replace")
            linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
        if self._copies:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose file has a copy, else None."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not self._copies:
            return None
        return self.spec(name, Path(spec.origin), spec.submodule_search_locations, only_copies=True)

    def spec(
        self, name: str, path: Path, subfolders: Sequence[str] | None = None, *, only_copies: bool = False
    ) -> ModuleSpec | None:
        """Return the spec that loads a file as a module; None if it has no copy, with `only_copies`."""
        copy = self._copies.get(path.resolve())
        if copy is None:
            return None if only_copies else spec_from_file_location(name, path)
        loader = _CopyLoader(name, str(path), copy)
        return spec_from_file_location(
            name, path, loader=loader, submodule_search_locations=None if subfolders is None else list(subfolders)
        )
