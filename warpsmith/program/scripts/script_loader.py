"""In the processes of a command: what is set up before the script runs, and the script's own text.

Python runs the script from here, so that its text may be a copy's, and so that calls of a model are marked.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from warpsmith.program.process.originals import OriginalsFinder
from warpsmith.program.scripts import script_loop
from warpsmith.program.scripts.script_steps import ScriptSteps
from warpsmith.program.scripts.trainer_folder import TrainerFolderFinder
from warpsmith.program.scripts.write_guard import WriteGuard

_MARK, _START = "__warpsmith_step__", "__warpsmith_start__"


def prepare_process(settings: Mapping[str, Any]) -> Callable[[], None]:
    """Prepare this process before its script runs; return what is to be called when PyTorch has been imported."""
    guard = WriteGuard(settings["root"], settings["writable"], Path(settings["refusal"]))
    copies = {Path(path): Path(copy) for path, copy in settings["copies"].items()}
    OriginalsFinder(Path(settings["folder"]), copies).install()
    _open_copies({os.path.realpath(path): copy for path, copy in copies.items()})
    steps = ScriptSteps(settings)
    sys.path_hooks.insert(0, functools.partial(_ScriptImporter, steps, copies))
    guard.install()
    if steps.work == "library":
        sys.meta_path.insert(0, TrainerFolderFinder(guard, settings["stacks"]))

    def prepare_torch() -> None:
        steps.prepare_torch()
        guard.guard_save()

    return prepare_torch


class _ScriptImporter:
    """Importer of the script, as `__main__`; Python asks for one as it does for an archive."""

    def __init__(self, steps: ScriptSteps, copies: Mapping[Path, Path], path: str) -> None:
        """Refuse any other path."""
        if not path.endswith(".py") or not Path(path).is_file() or Path(path).resolve() != steps.path:
            raise ImportError(path)
        self._steps, self._entry = steps, path
        self._text = copies.get(steps.path, steps.path)

    def find_spec(self, name: str, _target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of `__main__`."""
        return spec_from_loader(name, self, origin=str(self._steps.path)) if name == "__main__" else None  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> None:
        """Have Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the script in a module; `runpy` takes the code instead."""
        exec(self.get_code("__main__"), vars(module))

    def get_code(self, _name: str) -> CodeType:
        """Return code that runs the script as Python would run it by its path."""
        setattr(builtins, _START, self._start)
        return compile(f"exec({_START}(globals()))", "<warpsmith>", "exec")

    def _start(self, globals_: dict[str, Any]) -> CodeType:
        """Make names and paths those of a script that was run by its path, and return its code."""
        globals_.update(__spec__=None, __package__=None)
        folder = str(self._steps.path.parent)
        sys.path[:] = [folder if entry == self._entry else entry for entry in sys.path]
        tree = ast.parse(self._text.read_bytes(), str(self._steps.path))
        setattr(builtins, _MARK, self._mark)
        for call in script_loop.list_step_calls(tree, self._steps.work):
            inner = ast.Call(call.func, call.args, call.keywords)
            call.func, call.keywords = ast.Name(_MARK, ast.Load()), []
            call.args = [ast.Lambda(_NO_ARGUMENTS, ast.copy_location(inner, call))]
        return compile(ast.fix_missing_locations(tree), str(self._steps.path), "exec", dont_inherit=True)

    def _mark(self, call: Callable[[], object]) -> object:
        return self._steps.mark_step(_MARK, call, returns=True)


_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def _open_copies(copies: Mapping[str, Path]) -> None:
    """Have `open` read copies: a script may execute or parse files that it opens itself."""
    original = builtins.open
    if not copies:
        return

    @functools.wraps(original)
    def open_copy(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:  # noqa: ANN401 - any file
        if isinstance(file, str | os.PathLike) and not set(mode) & set("wax+"):
            file = copies.get(os.path.realpath(file), file)
        return original(file, mode, *args, **options)

    builtins.open = io.open = open_copy
