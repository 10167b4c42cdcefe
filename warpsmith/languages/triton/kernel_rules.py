"""Rules of what a kernel may read so that interpreter and compiler compute the same with it."""

from __future__ import annotations

import ast
import dis
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

PLAIN = frozenset(("float", "int", "len", "list", "max", "min", "print", "range"))
"""Builtins that compute the same under the interpreter and the compiler."""

HOST_FUNCTIONS = frozenset(("cdiv", "next_power_of_2"))
"""Functions of Triton's package that kernels call; `language` is the only module."""

_TELLING = frozenset(("current_target", "is_cuda", "is_hip", "target_info", "tensor_descriptor_base"))
"""Members of Triton's language that tell one target from another, or are no part of it."""

_PARTS = frozenset(("T", "dtype", "element_ty", "scalar", "shape", "type", "value"))
"""Attributes that instances of the language's types have, beside the methods of their classes."""

_SPEAKING = frozenset(("assert", "device_assert", "device_print", "print", "static_assert", "static_print"))
"""Calls that may get a formatted text, since they only show it."""

_REFUSED: dict[type[ast.AST], str] = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Try: "try",
    ast.With: "with",
    ast.Lambda: "lambda",
    ast.ClassDef: "class",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.NamedExpr: ":=",
}
"""Parts of Python that Triton does not compile, or that only tell interpreter and compiler apart."""


class TellingKernel(ValueError):
    """A kernel that may compute something else once it is compiled."""


@dataclass(frozen=True)
class FunctionText:
    """Definition of a function in a version's file, without its decorators."""

    name: str
    line: int
    """Line of its `def`."""
    text: str
    """Text from its `def` on."""
    names: tuple[str, ...]
    """Names that it reads from outside, those of its defaults and annotations included."""
    chains: tuple[tuple[str, ...], ...]
    """Attributes of such names: `("tl", "math", "exp")`."""


def telling(kernel: str, name: str) -> str:
    """Return the sentence on something that a kernel reads."""
    return (
        f"`{kernel}` reads `{name}`, which need not be the same under the interpreter and the compiler; pass what"
        " it needs as an argument or a `tl.constexpr` constant"
    )


def read_definition(function: FunctionType) -> FunctionText:
    """Read the definition of a function from its file.

    Raises:
        TellingKernel: it is not there, or uses what tells interpreter and compiler apart.
    """
    code = function.__code__
    return _read_definition(code.co_filename, code.co_name, code.co_firstlineno)


@cache
def _read_definition(path: str, name: str, first: int) -> FunctionText:
    text = Path(path).read_text(encoding="utf-8") if Path(path).is_file() else ""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            start = min((node.lineno, *(each.lineno for each in node.decorator_list)))
            if start == first:
                lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
                return _check_definition(name, node.lineno, "\n".join((*lines, "")))
    raise TellingKernel(f"`{name}` is not defined by a `def` in the version's file")


def _check_definition(name: str, line: int, text: str) -> FunctionText:
    tree = ast.parse(textwrap.dedent(text))
    if sum(each.strip().startswith("def ") for each in text.split("\n")) != 1:
        # The interpreter begins at the last such line, the compiler at the first.
        raise TellingKernel(
            f"`{name}` has another line that begins with `def`, at which the interpreter would begin"
        )
    chains, inner = [], {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    messages = {id(part) for node in ast.walk(tree) if _speaks(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if type(node) in _REFUSED:
            raise TellingKernel(telling(name, _REFUSED[type(node)]))
        if isinstance(node, ast.JoinedStr) and id(node) not in messages:
            raise TellingKernel(telling(name, "a formatted string"))
        if isinstance(node, ast.Compare) and not _compares_values(node):
            raise TellingKernel(telling(name, "is"))
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            chains.append(tuple(_chain(node)))
    names = dict.fromkeys(_global_names(compile(tree, name, "exec", dont_inherit=True)))
    for chain in chains:
        if chain[0] not in names:
            check_attributes(name, chain[1:])
    return FunctionText(
        name, line, text, tuple(names), tuple(dict.fromkeys(each for each in chains if each[0] in names))
    )


def _speaks(node: ast.AST) -> bool:
    """Return True for an assertion, and a call that shows its arguments."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    return getattr(node.func, "attr", getattr(node.func, "id", "")) in _SPEAKING


def _compares_values(node: ast.Compare) -> bool:
    """Return False where the identity of other objects than None is asked for."""
    if not any(isinstance(each, ast.Is | ast.IsNot) for each in node.ops):
        return True
    return any(isinstance(each, ast.Constant) and each.value is None for each in (node.left, *node.comparators))


def _chain(node: ast.expr) -> Iterator[str]:
    """Yield the name that attributes begin with, empty if they begin with another expression, and each of them."""
    if isinstance(node, ast.Attribute):
        yield from _chain(node.value)
        yield node.attr
    else:
        yield node.id if isinstance(node, ast.Name) else ""


def _global_names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def check_chain(kernel: str, value: Any, chain: Sequence[str]) -> None:  # noqa: ANN401
    """Follow the attributes of a value that a kernel reads.

    Raises:
        TellingKernel: one of them is not part of Triton's language.
    """
    for position, name in enumerate(chain[1:], 1):
        if not isinstance(value, ModuleType):
            return check_attributes(kernel, chain[position:])
        top = value.__name__ == "triton"
        value = getattr(value, name, None)
        public = not name.startswith("_") and name not in _TELLING
        listed = not top or name == "language" or name in HOST_FUNCTIONS
        if not (public and listed) or (isinstance(value, ModuleType) and not is_plain_module(value)):
            raise TellingKernel(telling(kernel, name))
    return None


def is_plain_module(module: ModuleType) -> bool:
    """Return True for a module that kernels may read from: those of Triton's language, and `math`."""
    own = module.__name__ == "triton" or module.__name__.split(".")[:2] == ["triton", "language"]
    return module is math or (own and sys.modules.get(module.__name__) is module)


def check_attributes(kernel: str, names: Sequence[str]) -> None:
    """Check attributes of values: raises TellingKernel for one that no type of the language has for kernels."""
    for name in names:
        if name not in _attributes():
            raise TellingKernel(telling(kernel, name))


@cache
def _attributes() -> frozenset[str]:
    import triton.language as tl

    kinds = (tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, tl.tensor_descriptor)
    return _PARTS | {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
