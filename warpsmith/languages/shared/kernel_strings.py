"""Kernels as strings of a Python file, CUDA C++ or HIP C++: normal form, lint, line numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpsmith.languages.shared.cpp_source import blank_tokens, normalise_cpp
from warpsmith.languages.shared.python_source import Finding, normalise_python

_KERNELS = re.compile(r"\b__(?:global|device)__\b|^\s*#\s*include\b", re.MULTILINE)
_VARIABLE = r"__(?:device|managed)__\s+(?!(?:\w+\s+)*(?:const|constexpr|inline|__forceinline__)\b)[\w:<>, *&]+?"
_DEVICE: tuple[tuple[str, str], ...] = (
    (rf"^\s*(?:static\s+)?({_VARIABLE}\b\w+)\s*(?:\[[^\]]*\]\s*)*(?:=[^;]*)?;", "outlives the call"),
    (r"\b(clock64|clock|wall_clock64|__globaltimer|__builtin_amdgcn_s_mem(?:real)?time)\s*\(", "reads a clock"),
    (r"(<<<)", "launches kernels from the device"),
    (r"(?<![\w.>:])(malloc|cudaMalloc|hipMalloc)\s*\(", "allocates on the device"),
)  # fmt: skip
_DEVICE_TEXT: tuple[tuple[str, str], ...] = (
    (r"(%(?:clock|clock64|globaltimer)\b)", "reads a clock"),
    (r'^\s*(#\s*include\s*["<]/)', "reaches for files"),
)
"""Patterns that are searched in string literals too."""


def holds_kernels(text: str) -> bool:
    """Return True if a text holds kernels or includes headers."""
    return _KERNELS.search(text) is not None


def normalise_kernels(source: str) -> str:
    """Return a Python file without docstrings, layout and comments, those of the kernels included."""
    plain = normalise_python(source)
    try:
        tree = ast.parse(plain)
    except (SyntaxError, ValueError):
        return plain
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNELS.search(node.value):
            node.value = normalise_cpp(node.value)
    return ast.unparse(tree)


def with_line_numbers(code: str, source: str, file: str) -> str:
    """Insert `#line` before each of the file's strings in a program, so that messages name lines of the file."""
    marks = []
    for text in kernel_strings(_parse(source)):
        at, start = code.find(text), source.find(text)
        if at >= 0 and start >= 0 and (at == 0 or code[at - 1] == "\n"):
            marks.append((at, source.count("\n", 0, start) + 1))
    for at, line in sorted(marks, reverse=True):
        code = f'{code[:at]}#line {line} "{file}"\n{code[at:]}'
    return code


def kernel_strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings that hold kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _KERNELS.search(node.value):
            yield node.value


def string_findings(source: str, tree: ast.Module) -> Iterator[Finding]:
    """Yield findings in the kernels of a Python file, with its lines."""
    for text in kernel_strings(tree):
        first = source.count("\n", 0, max(source.find(text), 0)) + 1
        yield from kernel_findings(text, first)


def kernel_findings(text: str, first: int) -> Iterator[Finding]:
    """Yield findings in CUDA C++ or HIP C++ that begins at line `first` of its file."""
    code, with_literals = blank_tokens(text, "comment", "literal"), blank_tokens(text, "comment")
    searches = [(code, *tripwire) for tripwire in _DEVICE]
    searches += [(with_literals, *tripwire) for tripwire in _DEVICE_TEXT]
    for searched, pattern, reason in searches:
        for match in re.finditer(pattern, searched, re.MULTILINE):
            yield first + text.count("\n", 0, match.start(1)), " ".join(match[1].split()), reason


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])
