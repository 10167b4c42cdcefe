"""Lint of a CuTe DSL version, besides that of any Python file, and its starting file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.python_source import Finding, PythonLint, lint_python, sentences
from warpsmith.languages.shared.signature import python_stub

_TRIPWIRES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("cutlass.cute.testing", "cutlass.testing"), "reads a clock"),
    (("cutlass.cute.runtime.load_module", "cutlass.cute.export", "tvm_ffi"), "runs what was compiled elsewhere"),
    (("cuda",), "talks to the CUDA driver itself"),
    (("quack", "flash_attn", "cudnn"), "calls a library's kernel"),
)
_LANES = ("cutlass.cute.arch.lane_idx", "cutlass.cute.arch.thread_idx")
_WARP_WIDE = ("warp_idx", "make_warp_uniform", "warp_reduction", "shuffle_", "vote_", "elect_one", "sync_warp")
_WARP_OPERATIONS = tuple(f"cutlass.cute.arch.{name}" for name in _WARP_WIDE)
"""Beginnings of the operations in which a lane waits for all others of its warp."""


def lint_cutedsl(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    lint = PythonLint(tree)
    return [*lint_python(source), *sentences([*_findings(tree, lint), *_divergent_operations(tree, lint)])]


def cutedsl_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import functools

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

ELEMENT = {{torch.float32: cutlass.Float32, torch.bfloat16: cutlass.BFloat16, torch.float16: cutlass.Float16}}


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * threads + thread
    if i < x.shape[0]:
        y[i] = x[i]


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream, threads: cutlass.Constexpr):
    blocks = cute.ceil_div(x.shape[0], threads)
    kernel(x, y, threads).launch(grid=(blocks, 1, 1), block=(threads, 1, 1), stream=stream)


@functools.cache
def compiled(dtype: torch.dtype):
    """One function for each set of facts fixed at compile time: their types must be plain."""
    x, y = (make_fake_compact_tensor(ELEMENT[dtype], (cute.sym_int(),), assumed_align=16) for _ in "xy")
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)  # PyTorch's current stream at each call
    return cute.compile(launch, x, y, stream, 256, options="--enable-tvm-ffi")


{stub.head}
    raise NotImplementedError("Write the kernel: call compiled(...)(...) here and {stub.duty}.")
'''


def _findings(tree: ast.Module, lint: PythonLint) -> Iterator[Finding]:
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ctx=ast.Load()) | ast.Name(ctx=ast.Load()) if id(node) not in inner:
                name = lint.dotted(node)
                for starts, reason in _TRIPWIRES:
                    if lint.is_imported(node) and any(f"{name}.".startswith(f"{start}.") for start in starts):
                        yield node.lineno, name, reason
            case ast.Assign(targets=targets):
                for target in targets:
                    if (name := lint.dotted(target)).startswith("cutlass."):
                        yield node.lineno, name, "is set for the whole process"
            case ast.Try() if any(_is_launch(inner) for part in node.body for inner in ast.walk(part)):
                yield node.lineno, "try", "wraps a kernel launch"


def _divergent_operations(tree: ast.Module, lint: PythonLint) -> Iterator[Finding]:
    """Yield warp-wide operations in a branch that only some lanes take: such a kernel compiles and never ends."""
    lanes = {name for node in ast.walk(tree) for name in _lane_names(node, lint)}
    for branch in ast.walk(tree):
        if isinstance(branch, ast.If) and any(
            _depends_on_lane(node, lint, lanes) for node in ast.walk(branch.test)
        ):
            for node in (inner for part in branch.body for inner in ast.walk(part)):
                if isinstance(node, ast.Call) and (name := lint.dotted(node.func)).startswith(_WARP_OPERATIONS):
                    yield node.lineno, name, "waits for lanes that are not in this branch"


def _lane_names(node: ast.AST, lint: PythonLint) -> Iterator[str]:
    """Yield the file's names for a lane or a thread: `lane = cute.arch.lane_idx()`."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = list(zip(names, values, strict=False))
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
            pairs = [(name, value) for name in names]
        case ast.Assign(targets=[name], value=value):
            pairs = [(name, value)]
        case _:
            pairs = []
    for name, value in pairs:
        if isinstance(name, ast.Name) and isinstance(value, ast.Call) and lint.dotted(value.func) in _LANES:
            yield name.id


def _depends_on_lane(node: ast.AST, lint: PythonLint, lanes: set[str]) -> bool:
    return (isinstance(node, ast.Call) and lint.dotted(node.func) in _LANES) or (
        isinstance(node, ast.Name) and node.id in lanes
    )


def _is_launch(node: ast.AST) -> bool:
    """Return True for `compiled(...)(...)` and `kernel(...).launch(...)`."""
    match node:
        case ast.Call(func=ast.Call()) | ast.Call(func=ast.Attribute(attr="launch")):
            return True
    return False
