"""The loop of a script that trains or generates, read from its source: nothing is imported or run.

This file imports only Python's library: a shell command's process loads it where Warpsmith is not installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

Work = Literal["optimizer", "library", "backward", "generate"]
"""Kind of call that ends a step: `library` is a call that runs the whole loop, as `Trainer.train`."""

_ORDER: tuple[Work, ...] = ("optimizer", "library", "backward", "generate")
_OPTIMIZERS = re.compile(r"optim|\bopt|opt\b|scaler|engine|adam|\bsgd|muon", re.IGNORECASE)
_TRAINERS = re.compile(r"trainer", re.IGNORECASE)
_GENERATORS = re.compile(r"model|pipe|llm|gpt|net|self", re.IGNORECASE)
_DEEPEST = 12

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class ScriptLoop:
    """A loop that the script's own lines run."""

    line: int
    """Line of the loop; of the call, if a library has the loop."""
    work: Work
    """What ends a step."""
    call: str
    """Text of the call that ends a step."""
    call_line: int
    """Its line."""
    guarded: bool
    """True if it runs only under `if __name__ == "__main__"`."""
    functions: tuple[str, ...] = ()
    """Functions between the script's lines and the loop, the outermost first."""


def find_script_loop(path: Path) -> ScriptLoop | None:
    """Find the loop that running the file would start; None if there is none, or the file does not parse."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return None
    return _Source(tree).find_loop()


def list_generate_calls(tree: ast.AST) -> list[ast.Call]:
    """List the calls of a model's `generate`."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _call_work(node) == "generate"]


class _Source:
    """A parsed file with its functions and methods by name."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
        self._functions = {function.name: function for function in functions}
        self._trainers = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            for target in node.targets
            if isinstance(target, ast.Name) and _last_name(node.value.func).endswith("Trainer")
        }

    def find_loop(self) -> ScriptLoop | None:
        """Return the first loop of the best kind, one that is not guarded before one that is."""
        plain = [node for node in self._tree.body if not _is_main_guard(node)]
        guarded = [node for node in self._tree.body if _is_main_guard(node)]
        for statements, is_guarded in ((plain, False), (guarded, True)):
            found = self._search(statements, ())
            if found is not None:
                return replace(found, guarded=is_guarded)
        return None

    def _search(self, statements: Sequence[ast.AST], functions: tuple[str, ...]) -> ScriptLoop | None:
        """Search statements, then the functions that they call."""
        nodes = [node for statement in statements for node in _walk_executed(statement)]
        loops = [node for node in nodes if isinstance(node, _Loop)]
        found = [loop for loop in (self._describe_loop(loop, functions) for loop in loops) if loop is not None]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        if not any(loop.work in ("optimizer", "backward") for loop in found):
            for call in calls:
                function = self._functions.get(_last_name(call.func))
                if function is not None and function.name not in functions and len(functions) < _DEEPEST:
                    inner = self._search(function.body, (*functions, function.name))
                    found += [inner] if inner is not None else []
        if not found:
            found = [
                ScriptLoop(call.lineno, "library", ast.unparse(call)[:60], call.lineno, False, functions)
                for call in calls
                if self._work_of(call) == "library"
            ]
        # The innermost of equal kind: an epoch is no step.
        return min(reversed(found), key=lambda loop: _ORDER.index(loop.work), default=None)

    def _describe_loop(self, loop: _Loop, functions: tuple[str, ...]) -> ScriptLoop | None:
        targets = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)} if not isinstance(loop, ast.While) else set()
        works = [
            (_ORDER.index(work), call)
            for call in self._calls_within(loop.body, frozenset(functions))
            if (work := self._work_of(call)) not in (None, "library") and not _is_of(call, targets)
        ]
        if not works:
            return None
        kind, call = min(works, key=lambda item: item[0])
        return ScriptLoop(loop.lineno, _ORDER[kind], ast.unparse(call)[:60], call.lineno, False, functions)

    def _calls_within(self, statements: Sequence[ast.AST], visited: frozenset[str]) -> Iterator[ast.Call]:
        """Yield calls in these statements and in the functions of this file that they call."""
        for statement in statements:
            for node in _walk_executed(statement):
                if isinstance(node, ast.Call):
                    yield node
                    function = self._functions.get(_last_name(node.func))
                    if function is not None and function.name not in visited:
                        yield from self._calls_within(function.body, visited | {function.name})

    def _work_of(self, call: ast.Call) -> Work | None:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "fit"):
            receiver = call.func.value
            name = _last_name(receiver.func) if isinstance(receiver, ast.Call) else _last_name(receiver)
            return "library" if name in self._trainers or _TRAINERS.search(name) else None
        return _call_work(call)


def _call_work(call: ast.Call) -> Work | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    receiver = ast.unparse(call.func.value)
    if call.func.attr == "step" and _OPTIMIZERS.search(" ".join([receiver, *map(ast.unparse, call.args)])):
        return "optimizer"
    if call.func.attr in ("backward", "manual_backward"):
        return "backward"
    if call.func.attr == "generate" and _GENERATORS.search(receiver):
        return "generate"
    return None


def _walk_executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all nodes below it that run with it: bodies of functions and classes do not."""
    if isinstance(node, (*_Function.__args__, ast.ClassDef, ast.Lambda)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk_executed(child)


def _is_main_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)


def _is_of(call: ast.Call, names: set[str]) -> bool:
    """Tell whether a method is called on one of these variables: `for optimizer in optimizers: optimizer.step()`."""
    function = call.func
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id in names


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))
