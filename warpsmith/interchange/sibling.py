"""Loader of Python files that are in the same folder as a definition."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import ModuleType

from warpsmith.lab.operator.source_module import import_source


def load_sibling(definition: str, name: str) -> ModuleType:
    """Load the file `name` from the folder of `definition`, which is the `__file__` of a definition."""
    return load_module(Path(definition).with_name(name))


def load_module(path: Path) -> ModuleType:
    """Run a Python file as a module with a name that is unique to its path.

    Raises:
        Exception: whatever the file raises.
    """
    name = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    return import_source(name, path)
