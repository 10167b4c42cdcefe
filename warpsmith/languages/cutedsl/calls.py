"""Compiled functions of CuTe DSL in this process: heard of when they are made, answered for when called."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

# What a compiled function can be, with TVM FFI and without; the DSL publishes no list of them.
_CALLABLE = (
    ("base_dsl.jit_executor", "JitCompiledFunction"),
    ("base_dsl.jit_executor", "JitExecutor"),
    ("cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionBase"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunction"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionWithKwargs"),
)
_made: list[weakref.ref[Any]] = []


@cache
def listen() -> None:
    """From here on every function that CuTe DSL compiles is known to `made`; asking twice changes nothing."""
    compiled = importlib.import_module("cutlass.base_dsl.jit_executor").JitCompiledFunction
    initialise = compiled.__init__

    def heard(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the DSL publishes no types
        initialise(self, *args, **kwargs)
        _made.append(weakref.ref(self))

    patch.object(compiled, "__init__", heard).start()


def made() -> list[Any]:
    """The functions compiled since `listen` that are still kept, in their order."""
    return [function for reference in _made if (function := reference()) is not None]


@contextmanager
def answered(answer: Callable[[Any], None]) -> Iterator[None]:
    """While it is entered a call of a compiled function does nothing but `answer(function)`."""
    with ExitStack() as stack:
        for module, kind in _CALLABLE:
            owner = getattr(importlib.import_module(f"cutlass.{module}"), kind)
            for name in {"__call__", "run_compiled_program"} & vars(owner).keys():
                stack.enter_context(patch.object(owner, name, lambda self, *_, **__: answer(self)))
        yield
