"""Programs that NVRTC compiled, kept on disk: a user's process waits for each of them once.

What goes wrong on the way, from a full disk to a file that somebody cut short, costs a compilation and is logged.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
"""What is kept; beyond, what was read longest ago goes."""

_LOG = logging.getLogger(__name__)
_NOTE = b" names"
"""After a program's key: where its sum and the names of its kernels are."""
_ELSEWHERE = re.compile(r"^\s*#\s*include\s*[^<\s]", re.MULTILINE)
"""Looked for in the folder that the process is in before all others."""


def compiled(folder: Path, code: str, options: Any, names: Sequence[str], compile_: Callable[[], Any]) -> Any:  # noqa: ANN401
    """A program as `cubin`, from the folder where it is there and whole, else compiled and put there.

    Args:
        folder: of `cuda.core.utils.FileStreamProgramCache`; made where it is not there.
        code: in CUDA C++.
        options: `cuda.core.ProgramOptions`.
        names: expressions that kernels are asked for by: `rows<float>`.
        compile_: compiles.

    Returns:
        `cuda.core.ObjectCode`; what `compile_` raises is raised.
    """
    key, kept = tried(partial(_key, code, options, names)), None
    if key is not None:
        kept = tried(partial(_read, folder, key))
    if kept is not None:
        return kept
    made = compile_()
    if key is not None:
        tried(partial(_keep, folder, key, made))
    return made


def tried(do: Callable[[], Any]) -> Any:  # noqa: ANN401
    """What it returns; None where it fails, which is logged: no call fails of what was, or could be, kept."""
    try:
        return do()
    except Exception as error:
        _LOG.info("what was compiled is not kept or not taken: %s", error, exc_info=True)
        return None


def _key(code: str, options: Any, names: Sequence[str]) -> bytes | None:  # noqa: ANN401 - cuda.core's
    """What decides what is compiled; None, or ValueError of cuda.core, where that is more than can be told."""
    if _ELSEWHERE.search(code):
        return None
    bare = copy.copy(options)  # headers are told here, all else that lies outside has cuda.core refuse
    bare.include_path = None
    utils = importlib.import_module("cuda.core.utils")
    told = utils.make_program_cache_key(
        code=code, code_type="c++", options=bare, target_type="cubin", name_expressions=names
    )
    seen = hashlib.sha256(told)
    for line in (*_compiler(), *_headers(options.include_path)):
        seen.update(f"{line}\n".encode())
    return seen.digest()


def _read(folder: Path, key: bytes) -> Any:  # noqa: ANN401
    """The program of a key, None where there is none; raises ValueError where it is not what was kept.

    It is the very bytes that the compiler would give: whether the GPU takes them is not asked.
    """
    with _cache(folder) as cache:
        cubin, note = cache.get(key), cache.get(key + _NOTE)
    if cubin is None or note is None:
        return None
    known = json.loads(note)
    if known["sha256"] != hashlib.sha256(cubin).hexdigest():
        raise ValueError("what was kept has changed since")
    named = {name: mangled.encode() for name, mangled in known["names"].items()}
    return importlib.import_module("cuda.core").ObjectCode.from_cubin(cubin, symbol_mapping=named)


def _keep(folder: Path, key: bytes, made: Any) -> None:  # noqa: ANN401
    """Put a program into the folder; whoever reads only half of it takes none."""
    note = {
        "sha256": hashlib.sha256(made.code).hexdigest(),
        "names": {name: mangled.decode() for name, mangled in made.symbol_mapping.items()},
    }
    with _cache(folder) as cache:
        cache[key], cache[key + _NOTE] = made, json.dumps(note).encode()


def _cache(folder: Path) -> Any:  # noqa: ANN401
    return importlib.import_module("cuda.core.utils").FileStreamProgramCache(folder, max_size_bytes=MOST_BYTES)


def _compiler() -> Iterator[str]:
    """NVRTC's libraries: releases of one version number compile otherwise."""
    library = Path(importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc").abs_path)
    yield from map(stamp, sorted(library.parent.glob("libnvrtc*")))


def _headers(given: Any) -> Iterator[str]:  # noqa: ANN401 - cuda.core takes one folder or several
    """Folders of headers, and all that lies below them."""
    folders = [Path(one) for one in ((given,) if isinstance(given, str | Path) else given or ())]
    yield from map(str, folders)
    for folder in folders:
        if not any(folder != other and folder.is_relative_to(other) for other in folders):  # else the other has it
            yield from map(stamp, sorted(_below(folder), key=lambda entry: entry.path))


def _below(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir():
                yield from _below(entry.path)
            else:
                yield entry


def stamp(file: Path | os.DirEntry[str]) -> str:
    """The name of a file, its size and time of change; raises OSError where it is not there."""
    known = file.stat()
    return f"{os.fspath(file)} {known.st_size} {known.st_mtime_ns}"
