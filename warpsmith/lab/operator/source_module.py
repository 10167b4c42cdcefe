"""Modules made from their source alone.

Python takes cached bytecode for a file if time and size agree. Two edits within a second may leave the bytecode of
the first, and anyone may write bytecode that does something else than the source that records name by its hash.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


class SourceLoader(SourceFileLoader):
    """Loader that reads and writes no bytecode."""

    def path_stats(self, path: str) -> Mapping[str, float]:
        """Refuse, so that Python reads the source."""
        raise OSError("bytecode is not looked for")


def import_source(name: str, path: Path) -> ModuleType:
    """Run a Python file as the module `name`.

    Raises:
        ImportError: it is not a Python file.
        Exception: whatever the file raises; the module is then not in `sys.modules`.
    """
    spec = spec_from_file_location(name, path, loader=SourceLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
