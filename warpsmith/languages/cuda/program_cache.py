"""Cache of the programs that NVRTC compiled, so that a user's processes compile each of them once."""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from warpsmith.languages.shared.object_store import ObjectStore, file_stamp, log_failure, tree_stamps

_RELATIVE_INCLUDE = re.compile(r"^\s*#\s*include\s*[^<\s]", re.MULTILINE)
"""An include that is looked up in the current folder of the process before all others."""


def compile_cached(
    folder: Path,
    code: str,
    options: Any,  # noqa: ANN401 - cuda.core's
    names: Sequence[str],
    compile_: Callable[[], Any],
) -> Any:  # noqa: ANN401
    """Return a program as `cubin` from the folder, or compile it and write it there.

    Args:
        folder: folder of the cache; created if needed.
        code: CUDA C++.
        options: `cuda.core.ProgramOptions`.
        names: expressions that kernels are asked for by: `rows<float>`.
        compile_: compiles the program.

    Returns:
        `cuda.core.ObjectCode`. Exceptions of `compile_` are passed on.
    """
    store = ObjectStore(folder / "cuda", ".cubin")
    key = log_failure(partial(_program_key, code, options, names))
    program = store.load(key, _read_program) if key is not None else None
    if program is not None:
        return program
    program = compile_()
    if key is not None:
        log_failure(lambda: store.write(key, _packed(program)))
    return program


def _program_key(code: str, options: Any, names: Sequence[str]) -> str | None:  # noqa: ANN401
    """Return the cache key of a program, or None if something outside it can change the result.

    Raises ValueError of cuda.core for options that name other outside files.
    """
    if _RELATIVE_INCLUDE.search(code):
        return None
    bare = copy.copy(options)  # cuda.core refuses options that name outside files; headers are hashed here instead
    bare.include_path = None
    utils = importlib.import_module("cuda.core.utils")
    digest = hashlib.sha256(
        utils.make_program_cache_key(
            code=code, code_type="c++", options=bare, target_type="cubin", name_expressions=names
        )
    )
    for line in (*_compiler_stamps(), *_header_stamps(options.include_path)):
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _packed(program: Any) -> bytes:  # noqa: ANN401
    """Return a line of JSON, from name expressions to the kernels' symbols, and the cubin."""
    symbols = {name: symbol.decode() for name, symbol in program.symbol_mapping.items()}
    return json.dumps(symbols).encode() + b"\n" + bytes(program.code)


def _read_program(path: Path) -> Any:  # noqa: ANN401
    """Return the program in a file: the very bytes of the compiler. The GPU's consent is not asked here."""
    line, _, cubin = path.read_bytes().partition(b"\n")
    symbols = {name: symbol.encode() for name, symbol in json.loads(line).items()}
    return importlib.import_module("cuda.core").ObjectCode.from_cubin(cubin, symbol_mapping=symbols)


def _compiler_stamps() -> Iterator[str]:
    """Yield the stamps of NVRTC's libraries: releases with the same version number compile differently."""
    library = Path(importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc").abs_path)
    yield from map(file_stamp, sorted(library.parent.glob("libnvrtc*")))


def _header_stamps(include_path: Any) -> Iterator[str]:  # noqa: ANN401 - cuda.core takes one folder or several
    """Yield the folders of headers, and the stamps of all files in them, each once."""
    paths = (include_path,) if isinstance(include_path, str | Path) else include_path or ()
    folders = [Path(path) for path in paths]
    yield from map(str, folders)
    for folder in folders:
        if not any(folder != other and folder.is_relative_to(other) for other in folders):
            yield from tree_stamps(folder)
