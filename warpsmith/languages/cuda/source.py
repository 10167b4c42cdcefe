"""Text of a CUDA C++ version, a Python file whose strings hold the kernels: lint, line numbers, starting file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.cpp_source import blank_tokens, lint_cpp, normalise_cpp
from warpsmith.languages.shared.python_source import Finding, PythonLint, lint_python, normalise_python, sentences
from warpsmith.languages.shared.signature import python_stub

_KERNELS = re.compile(r"\b__(?:global|device)__\b|^\s*#\s*include\b", re.MULTILINE)
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
_VARIABLE = r"__(?:device|managed)__\s+(?!(?:\w+\s+)*(?:const|constexpr|inline|__forceinline__)\b)[\w:<>, *&]+?"
_DEVICE: tuple[tuple[str, str], ...] = (
    (rf"^\s*(?:static\s+)?({_VARIABLE}\b\w+)\s*(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;", "outlives the call"),
    (r"\b(clock64|clock|__globaltimer)\s*\(", "reads a clock"),
    (r"(<<<)", "launches kernels from the device"),
    (r"(?<![\w.>:])(malloc|cudaMalloc)\s*\(", "allocates on the device"),
)  # fmt: skip
_DEVICE_TEXT: tuple[tuple[str, str], ...] = (
    (r"(%(?:clock|clock64|globaltimer)\b)", "reads a clock"),
    (r'^\s*(#\s*include\s*["<]/)', "reaches for files"),
)
"""Patterns that are searched in string literals too."""
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


def normalise_cuda(source: str) -> str:
    """Return the source without docstrings, layout and comments, those of the kernels included."""
    plain = normalise_python(source)
    try:
        tree = ast.parse(plain)
    except (SyntaxError, ValueError):
        return plain
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNELS.search(node.value):
            node.value = normalise_cpp(node.value)
    return ast.unparse(tree)


def lint_cuda(source: str) -> list[str]:
    """List what a reviewer should look at, one short sentence each with its line.

    Source that is no Python but holds kernels is read as a file of CUDA C++, as repositories have them.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        if not _KERNELS.search(source):
            return []
        return _sorted_by_line({*lint_cpp(source), *sentences(_kernel_findings(source, 1))})
    findings = sentences([*_host_findings(tree), *_device_findings(source, tree)])
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


def with_line_numbers(code: str, source: str, file: str) -> str:
    """Insert `#line` before each of the file's strings in a program, so that messages name lines of the file."""
    marks = []
    for text in _cuda_strings(_parse(source)):
        at, start = code.find(text), source.find(text)
        if at >= 0 and start >= 0 and (at == 0 or code[at - 1] == "\n"):
            marks.append((at, source.count("\n", 0, start) + 1))
    for at, line in sorted(marks, reverse=True):
        code = f'{code[:at]}#line {line} "{file}"\n{code[at:]}'
    return code


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


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _cuda_strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings that hold CUDA C++."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNELS.search(node.value):
            yield node.value


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


def _device_findings(source: str, tree: ast.Module) -> Iterator[Finding]:
    for text in _cuda_strings(tree):
        first = source.count("\n", 0, max(source.find(text), 0)) + 1
        yield from _kernel_findings(text, first)


def _kernel_findings(text: str, first: int) -> Iterator[Finding]:
    """Yield findings in CUDA C++ that begins at line `first` of its file."""
    code, with_literals = blank_tokens(text, "comment", "literal"), blank_tokens(text, "comment")
    searches = [(code, *tripwire) for tripwire in _DEVICE]
    searches += [(with_literals, *tripwire) for tripwire in _DEVICE_TEXT]
    for searched, pattern, reason in searches:
        for match in re.finditer(pattern, searched, re.MULTILINE):
            yield first + text.count("\n", 0, match.start(1)), " ".join(match[1].split()), reason


def _sorted_by_line(findings: Iterable[str]) -> list[str]:
    return sorted(findings, key=lambda text: int(text.split(":")[0].split()[1]))
