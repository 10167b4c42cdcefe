"""Versions that are Python files: checked before, and executed in, the process that runs them."""

from __future__ import annotations

import ast
import hashlib
import itertools
import sys
from pathlib import Path
from types import ModuleType

from warpsmith.core.definition import Definition
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.languages.triton import source as triton_source

_numbers = itertools.count()


def check(source: Path, definition: Definition) -> Build:
    """Check syntax and signature; the file is what is loaded.

    Raises:
        BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
    """
    try:
        tree = ast.parse(source.read_bytes(), source.name)
    except (SyntaxError, ValueError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BuildFailed(f"{source.name} does not parse{where}: {text}.") from error
    if fault := triton_source.signature_fault(tree, definition):
        raise BuildFailed(f"{source.name} has no `run` for {definition.name}: {fault}.")
    return Build(source, source, ())


def execute(path: Path) -> ModuleType:
    """The module of a file, under a name of its own and without bytecode beside it."""
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


def has_device() -> bool:
    """Whether there is a CUDA device, without importing PyTorch for the answer."""
    torch = sys.modules.get("torch")
    return bool(torch.cuda.is_available()) if torch is not None else Path("/dev/nvidiactl").exists()
