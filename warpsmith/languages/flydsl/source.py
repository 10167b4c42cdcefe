"""Lint and starting file of a FlyDSL version."""

from __future__ import annotations

import ast

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.python_source import lint_python
from warpsmith.languages.shared.signature import python_stub

_TRIPWIRES = {
    "flydsl.autotune": "measures inside the call",
    "flydsl.compiler.extern_link": "links code that is not in the file",
    "flydsl.compiler.link_utils": "links code that is not in the file",
    "flydsl.expr.extern": "links code that is not in the file",
    "flydsl._mlir": "reaches into FlyDSL",
    "flydsl.runtime": "reaches into FlyDSL",
    "aiter": "calls a library's kernel",
    "hip": "reaches past FlyDSL",
    "triton": "is another language",
}
_JIT = ("jit", "compile")


def lint_flydsl(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [*lint_python(source), *_foreign_names(tree), *_caught_calls(tree)]


def flydsl_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

BLOCK = 256


@flyc.kernel
def kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
    index = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if index < n:
        y[index] = x[index]


@flyc.jit
def launch(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    kernel(x, y, n).launch(grid=((n + BLOCK - 1) // BLOCK,), block=(BLOCK,), stream=stream)


{stub.head}
    # launch(x.view(-1), y.view(-1), n, fx.Stream(torch.cuda.current_stream().cuda_stream)), unless n is 0
    raise NotImplementedError("Write the kernel: launch it here and {stub.duty}.")
'''


def _foreign_names(tree: ast.Module) -> list[str]:
    findings = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), names=aliases):
                names = [f"{module}.{alias.name}" for alias in aliases]
            case _:
                continue
        findings += [
            f"line {node.lineno}: `{name}` {reason}"
            for name in names
            for start, reason in _TRIPWIRES.items()
            if f"{name}.".startswith(f"{start}.")
        ]
    return findings


def _caught_calls(tree: ast.Module) -> list[str]:
    """List statements that would hide the failure of a launch."""
    jitted = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_jitted(node)}
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    return [
        f"line {node.lineno}: `try` wraps a kernel launch"
        for node in tries
        if any(isinstance(part, ast.Name) and part.id in jitted for part in ast.walk(node))
    ]


def _is_jitted(function: ast.FunctionDef) -> bool:
    decorators = [
        ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in function.decorator_list
    ]
    return any(name.split(".")[-1] in _JIT for name in decorators)
