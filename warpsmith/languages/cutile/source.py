"""Lint and starting file of a cuTile version."""

from __future__ import annotations

import ast

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.python_source import lint_python
from warpsmith.languages.shared.signature import python_stub

_TRIPWIRES = {
    "cuda.tile.tune": "measures inside the call",
    "cuda.tile._": "reaches into cuTile",
    "cuda.tile.jax": "leaves torch",
    "cuda.bindings": "reaches past cuTile",
    "cuda.core": "reaches past cuTile",
    "cupy": "calls a library's kernel",
    "triton": "is another language",
    "cutlass": "is another language",
}


def lint_cutile(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line.

    `matmul` in a kernel is cuTile's own, not a call of a library.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [*lint_python(_host_code(source, tree)), *_foreign_names(tree), *_caught_launches(tree)]


def cutile_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import cuda.tile as ct
import torch


@ct.kernel
def kernel(x, y, TILE: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(TILE,))
    ct.store(y, index=(ct.bid(0),), tile=tile)


{stub.head}
    # ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, 1024),), kernel, (x, y, 1024)), unless n is 0
    raise NotImplementedError("Write the kernel: launch it here and {stub.duty}.")
'''


def _host_code(source: str, tree: ast.Module) -> str:
    """Return the source with the bodies of cuTile's functions removed; line numbers stay."""
    lines = source.splitlines()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(map(_is_tile_decorator, node.decorator_list)):
            lines[node.lineno - 1 : node.end_lineno] = [
                f"def {node.name}(): pass",
                *[""] * ((node.end_lineno or node.lineno) - node.lineno),
            ]
    return "\n".join(lines)


def _is_tile_decorator(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(name, ast.Attribute | ast.Name) and ast.unparse(name).split(".")[-1] in (
        "kernel",
        "function",
    )


def _foreign_names(tree: ast.Module) -> list[str]:
    findings = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), names=aliases):
                names = [f"{module}.{alias.name}" for alias in aliases]
            case ast.Attribute(attr="tune" | "jax", value=ast.Name(id="ct")):
                names = [f"cuda.tile.{node.attr}"]
            case _:
                continue
        findings += [
            f"line {node.lineno}: `{name}` {reason}"
            for name in names
            for start, reason in _TRIPWIRES.items()
            if name.startswith(start)
        ]
    return findings


def _caught_launches(tree: ast.Module) -> list[str]:
    """List statements that would hide the failure of a launch."""
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    return [
        f"line {node.lineno}: `try` wraps a kernel launch"
        for node in tries
        if any(isinstance(part, ast.Attribute) and part.attr == "launch" for part in ast.walk(node))
    ]
