"""cuTile source as a syntax tree: what deserves a look, and a starting file."""

from __future__ import annotations

import ast

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.signature import described, parameters
from warpsmith.languages.triton import source as triton_source

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


def findings(source: str) -> list[str]:
    """What deserves a look, a short sentence with its line each; a kernel's own `matmul` is no library's."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [*triton_source.findings(_host_code(source, tree)), *_imported(tree), *_caught(tree)]


def template(definition: Definition) -> str:
    """A starting file: `run` says what to write until it is written."""
    names = parameters(definition)
    results = ", ".join(definition.outputs)
    does = f"write into {results}" if definition.outputs_are == "given" else f"return {results}"
    lines = "\n".join(f"    {line}" for line in described(definition))
    return f'''"""{definition.name}: {definition.description}"""

import cuda.tile as ct
import torch


@ct.kernel
def kernel(x, y, TILE: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(TILE,))
    ct.store(y, index=(ct.bid(0),), tile=tile)


def run({", ".join(names)}):
    """Must {does}.

{lines}
    """
    # ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, 1024),), kernel, (x, y, 1024)), unless n is 0
    raise NotImplementedError("Write the kernel: launch it here and {does}.")
'''


def _host_code(source: str, tree: ast.Module) -> str:
    """The same lines, those of cuTile's own functions left empty."""
    lines = source.splitlines()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(_is_tile_code(each) for each in node.decorator_list):
            lines[node.lineno - 1 : node.end_lineno] = [
                f"def {node.name}(): pass",
                *[""] * ((node.end_lineno or node.lineno) - node.lineno),
            ]
    return "\n".join(lines)


def _is_tile_code(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute | ast.Name) and ast.unparse(called).split(".")[-1] in (
        "kernel",
        "function",
    )


def _imported(tree: ast.Module) -> list[str]:
    found = []
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
        found += [
            f"line {node.lineno}: `{name}` {what}"
            for name in names
            for start, what in _TRIPWIRES.items()
            if name.startswith(start)
        ]
    return found


def _caught(tree: ast.Module) -> list[str]:
    """Where a launch that fails would not be seen."""
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    return [
        f"line {node.lineno}: `try` stands around a kernel launch"
        for node in tries
        if any(isinstance(part, ast.Attribute) and part.attr == "launch" for part in ast.walk(node))
    ]
