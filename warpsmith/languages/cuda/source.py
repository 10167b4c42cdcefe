"""Text of a CUDA C++ version, a Python file whose strings hold the kernels: lint, programs, starting file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.cpp_source import lint_cpp
from warpsmith.languages.shared.kernel_strings import holds_kernels, kernel_findings, string_findings
from warpsmith.languages.shared.python_source import Finding, PythonLint, lint_python, sentences
from warpsmith.languages.shared.signature import python_stub

_HOST: tuple[tuple[tuple[str, ...], str], ...] = (
    (("cuda.core.StreamOptions", "cuda.core.Event", "cuda.core.EventOptions", "cuda.core.graph"),
     "uses streams, events or graphs of its own"),
    (("cuda.core.Buffer", "cuda.core.DeviceMemoryResource", "cuda.core.GraphMemoryResource",
      "cuda.core.VirtualMemoryResource", "cuda.core.ManagedMemoryResource"),
     "allocates memory without PyTorch"),
    (tuple(f"cuda.core.ObjectCode.from_{kind}" for kind in ("cubin", "ptx", "fatbin", "ltoir", "object")),
     "loads code that is not in the file"),
    (("cupy", "numba", "pycuda", "torch.cuda._compile_kernel"), "has another library launch kernels"),
)  # fmt: skip
_METHODS = {"create_stream", "create_event", "create_graph_builder"}
_NO_EFFECT_ON_SYNTAX = {
    "arch", "std", "include_path", "name", "lineinfo", "debug", "use_fast_math", "fma", "ftz", "prec_div",
    "prec_sqrt", "max_register_count", "ptxas_options", "restrict", "extra_device_vectorization", "split_compile",
    "disable_warnings", "device_code_optimize", "no_cache",
}  # fmt: skip


class StaticProgram(NamedTuple):
    """A program whose text and dialect can be read without running the file."""

    code: str
    std: str
    arch: str


def lint_cuda(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line.

    Source that is no Python but holds kernels is read as a file of CUDA C++, as repositories have them.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        if not holds_kernels(source):
            return []
        return _sorted_by_line({*lint_cpp(source), *sentences(kernel_findings(source, 1))})
    findings = sentences([*_host_findings(tree), *string_findings(source, tree)])
    return _sorted_by_line({*lint_python(source), *findings})


def cuda_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import functools

import numpy
import torch
from cuda.core import LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda.pathfinder import find_nvidia_header_directory

SOURCE = r"""
#include <cuda_bf16.h>

template <typename T>
__global__ void kernel(const T* __restrict__ x, T* __restrict__ y, long long n) {{
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}}
"""
TYPES = {{torch.bfloat16: "__nv_bfloat16", torch.float32: "float"}}


@functools.cache
def compiled(name: str):
    include = [path for part in ("cudart", "cccl") if (path := find_nvidia_header_directory(part))]
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=include)
    return Program(SOURCE, "c++", options).compile("cubin", name_expressions=(name,)).get_kernel(name)


{stub.head}
    raise NotImplementedError("Write the kernel: launch it here and {stub.duty}.")
    # stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    # config = LaunchConfig(grid=((n + 255) // 256,), block=(256,))
    # launch(stream, config, compiled(f"kernel<{{TYPES[x.dtype]}}>"), x.data_ptr(), y.data_ptr(), numpy.int64(n))
'''


def static_programs(tree: ast.Module) -> list[StaticProgram]:
    """Return programs that can be read without running the file: its strings, no option that affects syntax."""
    strings = {
        statement.targets[0].id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    options = [keyword for call in calls if _function_name(call) == "ProgramOptions" for keyword in call.keywords]
    if any(keyword.arg not in _NO_EFFECT_ON_SYNTAX for keyword in options):
        return []
    std, arch = (_constant(options, name, default) for name, default in (("std", "c++17"), ("arch", "sm_90a")))
    names = [
        call.args[0].id
        for call in calls
        if _function_name(call) == "Program" and call.args and isinstance(call.args[0], ast.Name)
    ]
    return [
        StaticProgram(strings[name], std, arch)
        for name in dict.fromkeys(names)
        if name in strings and std and arch
    ]


def _function_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _constant(options: Iterable[ast.keyword], name: str, default: str) -> str:
    """Return an option's text; empty if it is computed."""
    values = [keyword.value for keyword in options if keyword.arg == name]
    if not values:
        return default
    value = values[0].value if len(values) == 1 and isinstance(values[0], ast.Constant) else ""
    return value if isinstance(value, str) else ""


def _host_findings(tree: ast.Module) -> Iterator[Finding]:
    lint = PythonLint(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() | ast.Name():
                name = lint.dotted(node)
                for starts, reason in _HOST:
                    if any(name == start or name.startswith(f"{start}.") for start in starts):
                        yield node.lineno, name, reason
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _METHODS:
                yield node.lineno, f".{attr}()", "uses streams, events or graphs of its own"
            case ast.Try() if any(_is_launch(inner) for part in node.body for inner in ast.walk(part)):
                yield node.lineno, "try", "wraps a kernel launch"


def _is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _function_name(node) in ("launch", "cuLaunchKernelEx", "cuLaunchKernel")


def _sorted_by_line(findings: Iterable[str]) -> list[str]:
    return sorted(findings, key=lambda text: int(text.split(":")[0].split()[1]))
