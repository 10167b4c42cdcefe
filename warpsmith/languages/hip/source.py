"""Lint and starting file of a HIP C++ version, a Python file whose strings hold the kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.cpp_source import lint_cpp
from warpsmith.languages.shared.kernel_strings import holds_kernels, kernel_findings, string_findings
from warpsmith.languages.shared.python_source import Finding, PythonLint, lint_python, sentences
from warpsmith.languages.shared.signature import python_stub

_TRIPWIRES = {
    "torch.cuda._utils": "reaches into PyTorch",
    "hip": "reaches past PyTorch",
    "aiter": "calls a library's kernel",
    "cupy": "has another library launch kernels",
    "triton": "is another language",
}


def lint_hip(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line.

    Source that is no Python but holds kernels is read as a file of HIP C++, as repositories have them.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        if not holds_kernels(source):
            return []
        findings = {*lint_cpp(source), *sentences(kernel_findings(source, 1))}
    else:
        host = sentences([*_host_findings(tree), *string_findings(source, tree)])
        findings = {*lint_python(source), *host}
    return sorted(findings, key=lambda text: int(text.split(":")[0].split()[1]))


def hip_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import functools

import torch

SOURCE = r"""
#include <hip/hip_runtime.h>

extern "C" __global__ __launch_bounds__(256) void kernel(const TYPE* x, TYPE* __restrict__ y, int n) {{
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = x[i];
}}
"""
TYPES = {{torch.bfloat16: "__bf16", torch.float16: "_Float16", torch.float32: "float"}}


@functools.cache
def compiled(dtype: torch.dtype):
    return torch.cuda._compile_kernel(SOURCE, "kernel", nvcc_options=[f"-DTYPE={{TYPES[dtype]}}"])


{stub.head}
    # n = x.numel(); unless it is 0:
    # compiled(x.dtype)(grid=(-(-n // 256), 1, 1), block=(256, 1, 1), args=[x, y, n])
    raise NotImplementedError("Write the kernel: launch it here and {stub.duty}.")
'''


def _host_findings(tree: ast.Module) -> Iterator[Finding]:
    lint = PythonLint(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), names=aliases):
                names = [f"{module}.{alias.name}" for alias in aliases]
            case ast.Attribute() if lint.is_imported(node):
                names = [lint.dotted(node)]
            case ast.Try() if any(_is_launch(inner) for part in node.body for inner in ast.walk(part)):
                yield node.lineno, "try", "wraps a kernel launch"
                continue
            case _:
                continue
        for name in names:
            for start, reason in _TRIPWIRES.items():
                if f"{name}.".startswith(f"{start}."):
                    yield node.lineno, name, reason


def _is_launch(node: ast.AST) -> bool:
    """Return True for a call with a grid and a block."""
    return isinstance(node, ast.Call) and {"grid", "block"} <= {keyword.arg for keyword in node.keywords}
