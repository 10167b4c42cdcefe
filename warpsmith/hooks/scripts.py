"""Scripts that a shell command carries: the paths that they write, found in their text as well as that allows."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence

_METHODS = {
    "write_text", "write_bytes", "unlink", "rmdir", "touch", "rename", "replace", "symlink_to", "hardlink_to",
    "chmod",
}  # fmt: skip
"""Methods with which a path writes."""

_FUNCTIONS = {
    "remove", "unlink", "rename", "replace", "rmdir", "removedirs", "truncate", "rmtree", "move", "copy", "copy2",
    "copyfile", "copytree", "symlink", "link", "chmod",
}  # fmt: skip
"""Functions of `os` and `shutil` that write."""

_WHOLE_FOLDERS = {"rmtree", "move", "rename", "replace", "removedirs"}
"""Those that take a whole folder away."""

_COPIES = {"copy", "copy2", "copyfile", "copytree", "symlink", "link"}
"""Those that only read their first argument."""

_SHELLS = {"system", "popen", "run", "call", "check_call", "check_output", "Popen"}
"""Functions of `os` and `subprocess` that start a command."""

_WRITING_WORDS = re.compile(
    r"""open\s*\([^)]*['"][rbt]*[wax+]|>\s*['"$]|['"]\+?>|write|unlink|\brm(Sync)?\(|remove|rename|rmtree|truncate|system|exec|spawn|\bdelete\b"""
)
_QUOTED = re.compile(r"""'([^'\n]*)'|"([^"\n]*)\"""")


def script_writes(
    code: str, language: str, arguments: Sequence[str] = ()
) -> tuple[list[str], list[str], list[str]]:
    """Return the paths that a script plainly writes, the folders that it moves or removes, and its shell commands.

    Args:
        code: text of the script.
        language: `python`, or another one, whose texts are only searched for words that write.
        arguments: words of the command after the program, which can be in `sys.argv`.
    """
    try:
        tree = ast.parse(code) if language == "python" else None
    except (SyntaxError, ValueError):
        tree = None
    if tree is None:
        strings = ["".join(match).lstrip("+>") for match in _QUOTED.findall(code)]
        return (strings if _WRITING_WORDS.search(code) else [], [], [])
    script = _PythonScript(tree, arguments)
    return list(script.paths()), list(script.folders()), list(script.commands())


class _PythonScript:
    """Strings of a Python script, and the calls that write."""

    def __init__(self, tree: ast.AST, arguments: Sequence[str]) -> None:
        self._calls = [_qualified(node, _imported(tree)) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self._arguments = list(arguments)
        self._assigned: dict[str, list[ast.expr]] = {}
        self._strings = _constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assign(target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._assign(node.target, node.iter)
            elif isinstance(node, ast.NamedExpr):
                self._assign(node.target, node.value)

    def paths(self) -> Iterator[str]:
        """Yield every string that stands in a place that is written."""
        for call in self._calls:
            for expression in _written_places(call):
                yield from self._strings_of(expression) or self._strings

    def folders(self) -> Iterator[str]:
        """Yield every string that names what a call takes away, with all below it if that is a folder."""
        for call in self._calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in _WHOLE_FOLDERS:
                for expression in _written_places(call)[:1]:
                    yield from self._strings_of(expression)

    def commands(self) -> Iterator[str]:
        """Yield the shell commands."""
        for call in self._calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in _SHELLS and call.args:
                words = call.args[0]
                strings = self._strings_of(words)
                yield shlex.join(strings) if isinstance(words, ast.List | ast.Tuple) else " ".join(strings)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append(value)

    def _strings_of(self, expression: ast.expr, depth: int = 3) -> list[str]:
        """Return the strings in an expression and in the values of its names."""
        names = [node.id for node in ast.walk(expression) if isinstance(node, ast.Name)] if depth else []
        values = [value for name in names for value in self._assigned.get(name, ())]
        is_argument = any(isinstance(node, ast.Attribute) and node.attr == "argv" for node in ast.walk(expression))
        own = _constants(expression) + (self._arguments if is_argument else [])
        return own + [text for value in values for text in self._strings_of(value, depth - 1)]


def _imported(tree: ast.AST) -> dict[str, ast.Attribute]:
    """Return the names that `from os import remove` and the like bind, each as `os.remove`."""
    return {
        alias.asname or alias.name: ast.Attribute(ast.Name(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil", "subprocess")
        for alias in node.names
    }


def _qualified(call: ast.Call, imported: dict[str, ast.Attribute]) -> ast.Call:
    """Return the call with its function's module."""
    function = imported.get(call.func.id) if isinstance(call.func, ast.Name) else None
    return ast.Call(function, call.args, call.keywords) if function else call


def _written_places(call: ast.Call) -> list[ast.expr]:
    """Return the expressions that name what a call writes."""
    function, arguments = call.func, call.args
    if isinstance(function, ast.Name):
        return arguments[:1] if function.id == "open" and _writes(call, 1) else []
    if not isinstance(function, ast.Attribute):
        return []
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    if owner in ("os", "shutil"):
        chosen = arguments[1:2] if function.attr in _COPIES else arguments[:2]
        return list(chosen) if function.attr in _FUNCTIONS else []
    if function.attr == "open":
        target = arguments[:1] if owner in ("io", "os", "codecs") else [function.value]
        return target if _writes(call, 1 if owner in ("io", "os", "codecs") else 0) else []
    if function.attr == "replace" and len(arguments) != 1:
        return []  # of a string
    return [function.value] if function.attr in _METHODS else []


def _writes(call: ast.Call, position: int) -> bool:
    """Return True if the mode of an `open` writes, or is not plain."""
    modes = [*call.args[position : position + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    if not modes:
        return False
    mode = modes[0]
    return not isinstance(mode, ast.Constant) or bool(set(str(mode.value)) & set("wax+"))


def _constants(tree: ast.AST) -> list[str]:
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, str)]
