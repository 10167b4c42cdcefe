"""Calls of what `@flyc.jit` made, replaced: suppressed, or only compiled."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def replaced_jit_calls(call: Callable[[Any, tuple[Any, ...], dict[str, Any]], None]) -> Iterator[None]:
    """Have every call of a jitted function, compiled before or not, end in `call` within the context.

    `call` receives the jitted function and its arguments, or None for a function that `flyc.compile` made before.
    Calls inside another function, while that is traced, and those that `call` makes stay what they are.
    """
    context: Any = importlib.import_module("flydsl._mlir.ir").Context
    jit: Any = importlib.import_module("flydsl.compiler.jit_function")
    original = jit.JitFunction._compile_or_execute
    in_call = False

    def call_once(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ANN401
        nonlocal in_call
        in_call = True
        try:
            call(function, args, kwargs)
        finally:
            in_call = False

    def replaced(
        self: Any,  # noqa: ANN401 - FlyDSL publishes no types
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        execute: bool,
        return_compiled: bool = False,
    ) -> Any:  # noqa: ANN401
        if in_call or context.current is not None:
            return original(self, args, kwargs, execute=execute, return_compiled=return_compiled)
        call_once(self, args, kwargs)
        return (lambda *later: call_once(self, later, {})) if return_compiled else None

    with (
        patch.object(jit.JitFunction, "_compile_or_execute", replaced),
        patch.object(jit.CompiledFunction, "__call__", lambda _, *args: call(None, args, {})),
    ):
        yield


def compile_assembly(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:  # noqa: ANN401
    """Compile a jitted function for these arguments; return what was traced as MLIR, and AMD's assembly.

    FlyDSL itself goes on to a binary, for which it needs ROCm's linker.
    """
    jit: Any = importlib.import_module("flydsl.compiler.jit_function")
    backend: Any = importlib.import_module("flydsl.compiler.backends.rocm").RocmBackend
    fragments, compile_module = backend.pipeline_fragments, jit.MlirCompiler.compile
    texts: list[str] = []

    def to_assembly(self: Any, *, compile_hints: dict[str, Any]) -> list[str]:  # noqa: ANN401
        return [*fragments(self, compile_hints=compile_hints)[:-1], "gpu-module-to-binary{format=isa}"]

    def compile_and_record(module: Any, **options: Any) -> Any:  # noqa: ANN401
        traced = str(module)
        compiled = compile_module(module, **options)
        texts.extend((traced, _binary_text(compiled)))
        return compiled

    function._mem_cache.clear()  # or a call like an earlier one would compile nothing
    with (
        patch.object(backend, "pipeline_fragments", to_assembly),
        patch.object(jit.MlirCompiler, "compile", compile_and_record),
    ):
        function._compile_or_execute(args, kwargs, execute=False)
    traced, assembly = texts
    return traced, assembly


def _binary_text(module: Any) -> str:  # noqa: ANN401
    """Return the assembly in a compiled module."""
    gpu: Any = importlib.import_module("flydsl._mlir.dialects.gpu")
    (binary,) = (op for op in module.body.operations if op.operation.name == "gpu.binary")
    text: bytes = gpu.ObjectAttr(binary.objects[0]).object
    return text.decode().rstrip("\0")
