"""Loads a Python file that stands beside a definition, as it is."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_sibling(definition: str, name: str) -> ModuleType:
    """The module in the file `name` in the folder of `definition`, a definition's own `__file__`."""
    return load_module(Path(definition).with_name(name))


def load_module(path: Path) -> ModuleType:
    """Run a Python file as a module under a name that no other path has; raises what the file raises."""
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
