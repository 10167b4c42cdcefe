"""Loader of Python files that are in the same folder as a definition."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_sibling(definition: str, name: str) -> ModuleType:
    """Load the file `name` from the folder of `definition`, which is the `__file__` of a definition."""
    return load_module(Path(definition).with_name(name))


def load_module(path: Path) -> ModuleType:
    """Run a Python file as a module with a name that is unique to its path.

    Raises:
        Exception: whatever the file raises.
    """
    name = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
