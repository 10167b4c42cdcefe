"""Cache of the functions that CuTe DSL compiled, so that a user's processes compile each of them once."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from warpsmith import files
from warpsmith.languages.cutedsl import cache_key
from warpsmith.languages.shared.object_store import ObjectStore, log_failure
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.temporary import TemporaryFolder

_LOG = logging.getLogger(__name__)
_NAME = "kept"
"""Name of the function in every object."""
_WRONG_IMAGE = (200, 209, 218, 222)
"""CUDA's error codes for an image that is not for this GPU and driver: nothing of it has run, so another may."""


@dataclass(frozen=True)
class _Version:
    file: Path
    digest: str
    module: ModuleType
    store: ObjectStore


_versions: dict[str, _Version] = {}
"""Versions that were executed here, by the name of their module."""


def execute_cached(path: Path, folder: Path) -> ModuleType:
    """Execute a version's file. What it compiles in later calls is read from the folder, or written there.

    Args:
        path: the file.
        folder: folder of objects; created if needed.
    """
    _patch_compiler()
    digest = files.file_sha256(path)
    module = execute_file(path)
    _versions[module.__name__] = _Version(path, digest, module, ObjectStore(folder, ".o"))
    return module


class CachedFunction:
    """A compiled function from the cache, which takes arguments by position.

    It is compiled after all if it is asked for anything else, or if the GPU rejects the object.
    """

    def __init__(self, function: Callable[..., Any], compile_: Callable[[], Any]) -> None:
        self._function = function
        self._compile = cache(compile_)

    def __call__(self, *values: Any, **keywords: Any) -> Any:  # noqa: ANN401 - what the version passes
        """Return what the compiled function returns; raise what it raises."""
        if keywords:
            return self._compile()(*values, **keywords)
        try:
            return self._function(*values)
        except Exception as error:
            if getattr(error, "error_code", None) not in _WRONG_IMAGE:
                raise
            _LOG.info("the GPU rejects a cached function of CuTe DSL: %s", error)
        self._function = self._compile()
        return self._function(*values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._compile(), name)


@cache
def _patch_compiler() -> None:
    """Make `cute.compile` use the cache for functions of versions; other functions are compiled as usual."""
    compiler = importlib.import_module("cutlass.cute").compile
    compile_ = type(compiler).__call__

    def compile_cached(self: Any, *args: Any, **keywords: Any) -> Any:  # noqa: ANN401 - the DSL publishes no types
        compile_now = partial(compile_, self, *args, **keywords)
        version = _version_of(args[0]) if args and self is compiler and set(keywords) == {"options"} else None
        return compile_now() if version is None else _compiled(version, args, keywords["options"], compile_now)

    type(compiler).__call__ = compile_cached


def _version_of(function: object) -> _Version | None:
    """Return the version that a function belongs to; None if its signature allows more than calls by position."""
    plain = inspect.unwrap(function) if isinstance(function, FunctionType) else None
    if not isinstance(plain, FunctionType) or plain.__defaults__ or plain.__code__.co_kwonlyargcount:
        return None
    version = _versions.get(plain.__globals__.get("__name__", ""))
    return version if version is not None and plain.__globals__ is vars(version.module) else None


def _compiled(version: _Version, args: tuple[Any, ...], options: Any, compile_: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the function from the cache, or compile it and write it there."""
    if not isinstance(options, str) or "--enable-tvm-ffi" not in options.split():
        return compile_()
    key = log_failure(partial(cache_key.function_key, version.digest, version.module, args[0], args[1:], options))
    if key is None:
        return compile_()
    function = version.store.load(key, _load_object)
    if function is not None:
        return CachedFunction(function, compile_)
    compiled = compile_()
    log_failure(partial(_write_object, compiled, version, key))
    return compiled


def _load_object(path: Path) -> Callable[..., Any]:
    """Return the function of an object; raises what loading raises."""
    importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider")  # knows the errors that it raises
    load = importlib.import_module("cutlass.cute.runtime").load_module
    function: Callable[..., Any] = load(str(path), enable_tvm_ffi=True)[_NAME]
    return function


def _write_object(compiled: Any, version: _Version, key: str) -> None:  # noqa: ANN401 - the DSL publishes no types
    if files.file_sha256(version.file) != version.digest:
        return  # the compiler reads the file again, so this may be another source than the key's
    with TemporaryFolder() as temporary:
        path = Path(temporary, "function.o")
        compiled.export_to_c(str(path), function_name=_NAME)
        version.store.write(key, path.read_bytes())
