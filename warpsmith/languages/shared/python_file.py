"""Versions that are Python files: checked first, then executed in the process that runs them."""

from __future__ import annotations

import ast
import hashlib
import itertools
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from warpsmith.core.definition import Definition
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.languages.shared.python_source import signature_fault

_AMD_DRIVER = Path("/dev/kfd")
"""Device file of AMD's driver."""

_numbers = itertools.count()


def check_python_file(source: Path, definition: Definition) -> Build:
    """Check syntax and signature. The build's artifact is the file itself.

    Raises:
        BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
    """
    try:
        tree = ast.parse(source.read_bytes(), source.name)
    except (SyntaxError, ValueError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BuildFailed(f"{source.name} does not parse{where}: {text}.") from error
    if fault := signature_fault(tree, definition):
        raise BuildFailed(f"{source.name} has no `run` for {definition.name}: {fault}.")
    return Build(source, source, ())


def execute_file(path: Path) -> ModuleType:
    """Execute a file as a module with a unique name, without writing bytecode next to it."""
    source = path.read_bytes()
    name = f"warpsmith_solution_{hashlib.sha256(source).hexdigest()[:12]}_{next(_numbers)}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def has_cuda_device() -> bool:
    """Return True if there is a CUDA device; PyTorch is asked only if it is imported already."""
    torch = sys.modules.get("torch")
    return bool(torch.cuda.is_available()) if torch is not None else Path("/dev/nvidiactl").exists()


def has_amd_device() -> bool:
    """Return True if there is an AMD GPU; PyTorch is asked only if it is imported already."""
    torch = sys.modules.get("torch")
    return bool(torch.version.hip and torch.cuda.is_available()) if torch is not None else _AMD_DRIVER.exists()


def is_importable(name: str) -> bool:
    """Return True if a module or submodule is installed; nothing but its parent packages is imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that would hold it is missing too
        return False
