"""Compiled functions of CuTe DSL in this process: a list of them, and replacements for their calls."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

_COMPILED_CLASSES = (
    ("base_dsl.jit_executor", "JitCompiledFunction"),
    ("base_dsl.jit_executor", "JitExecutor"),
    ("cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionBase"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunction"),
    ("cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionWithKwargs"),
)
"""Classes of compiled functions, with TVM FFI and without; the DSL publishes no list of them."""
_functions: list[weakref.ref[Any]] = []


@cache
def record_compiled_functions() -> None:
    """List every function that CuTe DSL compiles from here on; a second call changes nothing."""
    compiled = importlib.import_module("cutlass.base_dsl.jit_executor").JitCompiledFunction
    initialise = compiled.__init__

    def initialise_and_record(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the DSL publishes no types
        initialise(self, *args, **kwargs)
        _functions.append(weakref.ref(self))

    patch.object(compiled, "__init__", initialise_and_record).start()


def compiled_functions() -> list[Any]:
    """Return the recorded functions that are still alive, in the order of their compilation."""
    return [function for reference in _functions if (function := reference()) is not None]


@contextmanager
def replaced_calls(replacement: Callable[[Any], None]) -> Iterator[None]:
    """Make a call of a compiled function do nothing but `replacement(function)` within the context."""
    with ExitStack() as stack:
        for module, kind in _COMPILED_CLASSES:
            owner = getattr(importlib.import_module(f"cutlass.{module}"), kind)
            for name in {"__call__", "run_compiled_program"} & vars(owner).keys():
                stack.enter_context(patch.object(owner, name, lambda self, *_, **__: replacement(self)))
        yield
