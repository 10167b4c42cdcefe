"""Compiled kernels of this process and of earlier ones of the same source, as files in the worker's cache folder.

cuTile's own cache is one database, whose keys hold the path of the source file: no worker finds what another one
compiled. Here each kernel has a folder of its own, which the grader can copy, and paths begin at the worker's
folder.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from warpsmith.core.evaluation import Resources

VARIABLE = "CUDA_TILE_CACHE_DIR"
"""Environment variable that names the folder."""

_CUBIN, _REPORT = "kernel.cubin", "resources.json"
_LOOKED_UP = ("cache_lookup", "cache_store", "evict_lru")
"""Functions of cuTile's compiler that look kernels up in its cache."""


def keep_kernels_as_files() -> None:
    """Make cuTile look up and store compiled kernels here; nothing changes where no folder is named, or in a
    release of cuTile that has no such cache."""
    folder = os.environ.get(VARIABLE)
    try:
        compiler: Any = importlib.import_module("cuda.tile._compile")
        names: Any = importlib.import_module("cuda.tile._bytecode.debug_info").DebugAttrTable
    except (ImportError, AttributeError):
        return
    if not folder or not all(hasattr(compiler, name) for name in _LOOKED_UP):
        return
    compiler.cache_lookup = lambda root, name: _read(Path(root) / name / _CUBIN)
    compiler.cache_store = lambda root, name, cubin, *_: _write(Path(root) / name, _CUBIN, cubin)
    compiler.evict_lru = lambda *_: None
    _begin_paths_at(Path(folder).parent, names)


def _begin_paths_at(folder: Path, names: Any) -> None:  # noqa: ANN401 - cuTile's table of names
    """Write source files below a folder with their paths in it, for the same bytes in every worker."""
    name_file, name_line, start = names.file, names.loc, f"{folder}{os.sep}"

    def file(table: Any, name: str, directory: str, *rest: Any) -> Any:  # noqa: ANN401
        return name_file(table, name, f"{directory}{os.sep}".removeprefix(start).rstrip(os.sep), *rest)

    def line(table: Any, scope: Any, filename: str, *rest: Any) -> Any:  # noqa: ANN401
        return name_line(table, scope, filename.removeprefix(start), *rest)

    names.file, names.loc = file, line


def report_once(cubin: bytes, kernel: str, hints: str, make_report: Callable[[], Resources]) -> Resources:
    """Return a kernel's report from its file, and make and keep it where there is none.

    A disassembler takes half a second a kernel, most of it to start.
    """
    folder = os.environ.get(VARIABLE)
    if not folder:
        return make_report()
    name = hashlib.sha256(b"\0".join([kernel.encode(), hints.encode(), cubin])).hexdigest()
    path = Path(folder) / f"report-{name}"
    try:
        return Resources.model_validate_json(_read(path / _REPORT) or b"")
    except ValidationError:
        report = make_report()
        _write(path, _REPORT, report.model_dump_json().encode())
        return report


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write a folder with one file, unless it is there: a copy of the cache has it whole or not at all."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
        (unfinished / name).write_bytes(content)
        try:
            unfinished.rename(folder)
        except OSError:  # another thread or process wrote it
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError:
        return  # the kernel is compiled again when it is asked for again
