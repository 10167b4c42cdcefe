"""The loop of a script that trains, generates or calls a model, read from its source: nothing is imported or run.

This file imports only Python's library: a shell command's process loads it where Warpsmith is not installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

Work = Literal["optimizer", "library", "backward", "generate", "forward"]
"""Kind of call that ends a step: `library` is a call that runs the whole loop, as `Trainer.train`; `forward` is a
call of a model, as in an evaluation."""

_ORDER: tuple[Work, ...] = ("optimizer", "library", "backward", "generate", "forward")
_OPTIMIZERS = re.compile(r"optim|\bopt|opt\b|scaler|engine|adam|\bsgd|muon", re.IGNORECASE)
_TRAINERS = re.compile(r"trainer", re.IGNORECASE)
_GENERATORS = re.compile(r"model|pipe|llm|gpt|net|self", re.IGNORECASE)
_MODELS = re.compile(
    r"(^|_)(model|net|network|gpt|llm|pipe|pipeline|encoder|decoder|classifier|compiled)\d*$", re.IGNORECASE
)
_FORWARDS = {"forward", "predict", "encode", "transcribe"}
"""Methods of a model, or of what wraps one, that compute its outputs."""

_MAKERS = re.compile(r"from_pretrained|compile|pipeline|[A-Z]")
"""Functions and classes whose results are models if something calls them, but for those of `_NO_MODELS`."""

_NO_MODELS = re.compile(r"tok|process|loss|crit|metric|transform|schedul|extract|collat", re.IGNORECASE)
_MOVES = {"to", "eval", "cuda", "cpu", "half", "bfloat16", "float"}
"""Methods that return the model itself."""

_MOST = 60

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True)
class ScriptLoop:
    """A loop that the script's own lines run."""

    line: int
    """Line of the loop; of the call, if a library has the loop."""
    work: Work
    """Kind of the call that ends a step."""
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
    return _ParsedScript(tree).find_loop()


def list_step_calls(tree: ast.Module, work: Work) -> list[ast.Call]:
    """List the calls that end steps where a call does so: each `generate`, or the loop's call of its model."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if work == "generate":
        return [call for call in calls if _call_work(call) == work]
    loop = _ParsedScript(tree).find_loop()
    if work != "forward" or loop is None or loop.work != work:
        return []
    return [call for call in calls if call.lineno == loop.call_line and _shorten(call) == loop.call][:1]


class _ParsedScript:
    """A parsed file with its functions and methods by name."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        self._methods = {item.name: item for kind in classes for item in kind.body if isinstance(item, _Function)}
        self._functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
        own = {kind.name for kind in classes}
        makers = list(_assigned_calls(tree))
        self._models = {
            name for name, maker in makers if _MAKERS.match(maker) and not _NO_MODELS.search(f"{name} {maker}")
        }
        self._no_models = {*self._functions, *own, *_imported_names(tree)}
        self._instances = {"self", "cls", *(name for name, maker in makers if maker in own)}
        self._trainers = {name for name, maker in makers if maker.endswith("Trainer")}
        self._optimizers = {name for name, maker in makers if _OPTIMIZERS.search(maker)}
        self._optimizers |= {
            node.target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.For | ast.comprehension)
            and isinstance(node.target, ast.Name)
            and _OPTIMIZERS.search(ast.unparse(node.iter))
        }
        self._searched: set[str] = set()

    def find_loop(self) -> ScriptLoop | None:
        """Return the first loop of the best kind, one that is not guarded before one that is."""
        plain = [node for node in self._tree.body if not _is_main_guard(node)]
        guarded = [node for node in self._tree.body if _is_main_guard(node)]
        for statements, is_guarded in ((plain, False), (guarded, True)):
            self._searched = set()
            loop = self._search(statements, ())
            if loop is not None:
                return replace(loop, guarded=is_guarded)
        return None

    def _search(self, statements: Sequence[ast.AST], functions: tuple[str, ...]) -> ScriptLoop | None:
        """Search statements, then the functions that they call, each once."""
        nodes = [node for statement in statements for node in _walk_executed(statement)]
        described = [self._describe_loop(node, functions) for node in nodes if isinstance(node, _Loop)]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        if not any(loop and loop.work in ("optimizer", "backward") for loop in described):
            for function in self._called_functions(calls, self._searched):
                described.append(self._search(function.body, (*functions, function.name)))
        if not any(loop and loop.work != "forward" for loop in described):
            described += [
                ScriptLoop(call.lineno, "library", _shorten(call), call.lineno, False, functions)
                for call in calls
                if self._work_of(call) == "library"
            ]
        # The innermost of equal kind: an epoch is no step.
        loops = [loop for loop in reversed(described) if loop is not None]
        return min(loops, key=lambda loop: _ORDER.index(loop.work), default=None)

    def _describe_loop(self, loop: _Loop, functions: tuple[str, ...]) -> ScriptLoop | None:
        head = [] if isinstance(loop, ast.While) else list(ast.walk(loop.target))
        targets = {node.id for node in head if isinstance(node, ast.Name)}
        works = [
            (_ORDER.index(work), call)
            for call in self._calls_within(loop.body, set(functions))
            if (work := self._work_of(call)) not in (None, "library") and not _is_of(call, targets)
        ]
        if not works:
            return None
        kind, call = min(works, key=lambda item: item[0])
        return ScriptLoop(loop.lineno, _ORDER[kind], _shorten(call), call.lineno, False, functions)

    def _calls_within(self, statements: Sequence[ast.AST], visited: set[str]) -> Iterator[ast.Call]:
        """Yield calls in these statements and in the functions of this file that they call."""
        nodes = [node for statement in statements for node in _walk_executed(statement)]
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        yield from calls
        for function in self._called_functions(calls, visited):
            yield from self._calls_within(function.body, visited)

    def _called_functions(self, calls: Sequence[ast.Call], visited: set[str]) -> Iterator[_Function]:
        """Yield the file's functions and methods that are called, those not in `visited`, and add them to it.

        A method counts if it is called on an object of one of the file's classes: `model.train()` is none.
        """
        for call in calls:
            function = None
            if isinstance(call.func, ast.Name):
                function = self._functions.get(call.func.id)
            elif isinstance(call.func, ast.Attribute) and _last_name(call.func.value) in self._instances:
                function = self._methods.get(call.func.attr)
            if function is not None and function.name not in visited:
                visited.add(function.name)
                yield function

    def _work_of(self, call: ast.Call) -> Work | None:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("train", "fit"):
            receiver = call.func.value
            name = _last_name(receiver.func) if isinstance(receiver, ast.Call) else _last_name(receiver)
            return "library" if name in self._trainers or _TRAINERS.search(name) else None
        function = call.func
        if isinstance(function, ast.Attribute) and function.attr == "step":
            return "optimizer" if _last_name(function.value) in self._optimizers else _call_work(call)
        return _call_work(call) or ("forward" if self._calls_model(function) else None)

    def _calls_model(self, function: ast.expr) -> bool:
        """Tell whether what is called is a model, or a method of one that computes its outputs."""
        if isinstance(function, ast.Attribute) and function.attr in _FORWARDS:
            function = function.value
        name = _last_name(function)
        return name in self._models or (name not in self._no_models and bool(_MODELS.search(name)))


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
    return (
        isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)
    )


def _is_of(call: ast.Call, names: set[str]) -> bool:
    """Tell whether a loop's variable or its method is called: `for optimizer in optimizers: optimizer.step()`."""
    function = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return isinstance(function, ast.Name) and function.id in names


def _assigned_calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each variable that is assigned the result of a call, with the last name of what is called."""
    for node in ast.walk(tree):
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        if targets and isinstance(node.value, ast.Call):  # type: ignore[attr-defined]
            maker = _last_name(_unmoved(node.value).func)  # type: ignore[attr-defined]
            yield from ((target.id, maker) for target in targets if isinstance(target, ast.Name))


def _unmoved(call: ast.Call) -> ast.Call:
    """Return the call that made what a chain such as `Net().to(device).eval()` returns."""
    function = call.func
    while isinstance(function, ast.Attribute) and function.attr in _MOVES and isinstance(function.value, ast.Call):
        call, function = function.value, function.value.func
    return call


def _imported_names(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name for node in imports for alias in node.names}


def _shorten(call: ast.Call) -> str:
    """Return the text of a call, its arguments left out if they are long."""
    text = ast.unparse(call)
    return text if len(text) <= _MOST else f"{ast.unparse(call.func)}(...)"


def _last_name(node: ast.AST) -> str:
    """Return the last name of a dotted expression."""
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))
