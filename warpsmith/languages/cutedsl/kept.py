"""Functions that CuTe DSL compiled, kept on disk as objects: a user's process waits for each of them once.

What goes wrong on the way, from a full disk to an object that the GPU does not take, costs a compilation and is
logged.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import logging
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
from warpsmith.languages.cuda.kept import MOST_BYTES, tried
from warpsmith.languages.cutedsl import key as cutedsl_key
from warpsmith.languages.shared import python_file

_LOG = logging.getLogger(__name__)
_NAME = "kept"
"""Of the function in every object."""
_REFUSED = (200, 209, 218, 222)
"""Codes of CUDA for an image that is not for this GPU and driver: nothing of it has run, so another may."""


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

    Where it is asked for anything else, or the GPU does not take it, it is compiled after all.
    """

    def __init__(self, function: Callable[..., Any], compile_: Callable[[], Any]) -> None:
        self._function = function
        self._compile = cache(compile_)

    def __call__(self, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - what the version passes
        """What the compiled function returns; raises what it raises."""
        if named:
            return self._compile()(*values, **named)
        try:
            return self._function(*values)
        except Exception as error:
            if getattr(error, "error_code", None) not in _REFUSED:
                raise
            _LOG.info("kept functions of CuTe DSL: the GPU does not take one: %s", error)
        self._function = self._compile()
        return self._function(*values)

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
    key = tried(partial(cutedsl_key.make, version.digest, version.module, args[0], args[1:], options))
    if key is None:
        return compile_()
    function = tried(partial(_loaded, version.folder, key))
    if function is not None:
        return Kept(function, compile_)
    made = compile_()
    tried(partial(_keep, made, version, key))
    return made


def _loaded(folder: Path, key: str) -> Callable[..., Any] | None:
    """A function from the folder; an object that is torn or does not load is removed."""
    for path in sorted(folder.glob(f"{key}.*.o")):
        function: Callable[..., Any] | None = tried(partial(_load, path))
        if function is not None:
            return function
        path.unlink()
    return None


def _load(path: Path) -> Callable[..., Any]:
    """The function of an object; raises ValueError where it is not what was kept, and what loading raises."""
    if files.sha256(path) != path.name.split(".")[1]:
        raise ValueError("it has changed since")
    importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider")  # knows the errors that it raises
    load = importlib.import_module("cutlass.cute.runtime").load_module
    function: Callable[..., Any] = load(str(path), enable_tvm_ffi=True)[_NAME]
    with suppress(OSError):
        os.utime(path)
    return function


def _keep(made: Any, version: _Version, key: str) -> None:  # noqa: ANN401 - the DSL publishes no types
    """Put an object into the folder under its key and its own digest."""
    if files.sha256(version.file) != version.digest:
        return  # the compiler read the file again
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
        path = Path(temporary, "kept.o")
        made.export_to_c(str(path), function_name=_NAME)
        content = path.read_bytes()
    files.write(version.folder / f"{key}.{hashlib.sha256(content).hexdigest()}.o", content)
    left = MOST_BYTES
    for path in sorted(version.folder.glob("*.o"), key=lambda path: path.stat().st_mtime, reverse=True):
        left -= path.stat().st_size
        if left < 0:
            path.unlink(missing_ok=True)
