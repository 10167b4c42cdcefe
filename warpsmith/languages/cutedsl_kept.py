"""Functions that CuTe DSL compiled, kept on disk as objects: a user's process waits for each of them once."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

from warpsmith import files
from warpsmith.languages import cutedsl_key, python_file
from warpsmith.languages.cuda_kept import MOST_BYTES

_NAME = "kept"
"""Of the function in every object."""


@dataclass(frozen=True)
class _Version:
    file: Path
    digest: str
    module: ModuleType
    folder: Path


_versions: dict[str, _Version] = {}


def execute(path: Path, folder: Path) -> ModuleType:
    """The module of a version's file; what it compiles at calls comes from the folder, or is put there.

    Args:
        path: the file.
        folder: of objects; made where it is not there.
    """
    _listen()
    digest = files.sha256(path)
    module = python_file.execute(path)
    _versions[module.__name__] = _Version(path, digest, module, folder)
    return module


class Kept:
    """A compiled function from the folder, which takes arguments by position.

    Where it is asked for anything else it is compiled after all.
    """

    def __init__(self, function: Callable[..., Any], compile_: Callable[[], Any]) -> None:
        self._function = function
        self._compile = cache(compile_)

    def __call__(self, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - what the version passes
        """What the compiled function returns; raises what it raises."""
        return self._compile()(*values, **named) if named else self._function(*values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._compile(), name)


@cache
def _listen() -> None:
    """From here on `cute.compile` looks for what a version had compiled; others' functions are left alone."""
    compiler = importlib.import_module("cutlass.cute").compile
    compile_ = type(compiler).__call__

    def heard(self: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - the DSL publishes no types
        making = partial(compile_, self, *args, **named)
        version = _version(args[0]) if args and self is compiler and set(named) == {"options"} else None
        return making() if version is None else _compiled(version, args, named["options"], making)

    patch.object(type(compiler), "__call__", heard).start()


def _version(function: object) -> _Version | None:
    """The version that a function is of, where calls by position are all that its signature allows to count on."""
    plain = inspect.unwrap(function) if isinstance(function, FunctionType) else None
    if not isinstance(plain, FunctionType) or plain.__defaults__ or plain.__code__.co_kwonlyargcount:
        return None
    version = _versions.get(plain.__globals__.get("__name__", ""))
    return version if version is not None and plain.__globals__ is vars(version.module) else None


def _compiled(version: _Version, args: tuple[Any, ...], options: Any, compile_: Callable[[], Any]) -> Any:  # noqa: ANN401
    if not isinstance(options, str) or "--enable-tvm-ffi" not in options.split():
        return compile_()
    try:
        key = cutedsl_key.make(version.digest, version.module, args[0], args[1:], options)
    except cutedsl_key.Untold:
        return compile_()
    function = _loaded(version.folder, key)
    if function is not None:
        return Kept(function, compile_)
    made = compile_()
    with suppress(Exception):  # the version runs, whether or not it can be kept
        if files.sha256(version.file) == version.digest:  # the compiler read the file again
            _keep(made, version.folder, key)
    return made


def _loaded(folder: Path, key: str) -> Callable[..., Any] | None:
    """A function from the folder; an object that is torn or does not load is removed."""
    for path in sorted(folder.glob(f"{key}.*.o")):
        with suppress(Exception):
            if files.sha256(path) == path.name.split(".")[1]:
                importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider")  # knows the errors that it raises
                load = importlib.import_module("cutlass.cute.runtime").load_module
                function: Callable[..., Any] = load(str(path), enable_tvm_ffi=True)[_NAME]
                with suppress(OSError):
                    os.utime(path)
                return function
        with suppress(OSError):
            path.unlink()
    return None


def _keep(made: Any, folder: Path, key: str) -> None:  # noqa: ANN401 - the DSL publishes no types
    """Put an object into the folder under its key and its own digest."""
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
        path = Path(temporary, "kept.o")
        made.export_to_c(str(path), function_name=_NAME)
        content = path.read_bytes()
    files.write(folder / f"{key}.{hashlib.sha256(content).hexdigest()}.o", content)
    left = MOST_BYTES
    for path in sorted(folder.glob("*.o"), key=lambda path: path.stat().st_mtime, reverse=True):
        left -= path.stat().st_size
        if left < 0:
            path.unlink(missing_ok=True)
