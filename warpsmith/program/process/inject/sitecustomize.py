"""Start of every Python process of a shell command that runs steps.

A command without a loop that is found in its script is recorded as a whole: from the import of PyTorch to the end
of the process, when its trace and its facts are written. Else the script is run step by step. The environment may
have no Warpsmith, so what is needed is loaded by path.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_INJECTED = Path(__file__).resolve().parent
_RECORD_VARIABLE = "WARPSMITH_RECORD"
_STEPS_VARIABLE = "WARPSMITH_STEPS"
_PACKAGE = _INJECTED.parents[2]


class _TorchImport(MetaPathFinder, Loader):
    """Import hook that calls a function when PyTorch has been imported."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._original: Any = None
        self._begin = begin

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of PyTorch with this loader, and None for other modules."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            self._original, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module with its own loader."""
        module: ModuleType | None = self._original.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with its own loader, then begin to record."""
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._original
        self._original.exec_module(module)
        self._begin()


class _PackageFinder(MetaPathFinder):
    """Finder of Warpsmith alone: nothing else of its environment is for the program."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the package, and None for other modules."""
        if name != _PACKAGE.name:
            return None
        return importlib.util.spec_from_file_location(
            name, _PACKAGE / "__init__.py", submodule_search_locations=[str(_PACKAGE)]
        )


def _record(folder: Path) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    gather, profiler = _load("gather"), _load("profiler_recording")
    gather.record_compile_calls()
    stack, process = ExitStack(), os.getpid()
    recording = stack.enter_context(profiler.record_profiler(record_shapes=True))
    facts: dict[str, Any] = {}

    def gather_once(*_: object) -> None:
        """Gather facts at the first optimizer step, because objects of a function end with it."""
        if not facts:
            facts.update(gather.gather_facts())

    def end() -> None:
        if os.getpid() != process:
            return
        stack.close()
        observed = profiler.summarize_step(recording)
        values = {**(facts or gather.gather_facts()), **gather.gather_memory(), "observed": observed}
        trace = folder / f"{process}.json.gz"
        recording.profiler.export_chrome_trace(str(trace))
        trace.with_name(f"{process}.facts").write_text(json.dumps(values))

    register_optimizer_step_post_hook(gather_once)
    atexit.register(end)


def _load(name: str) -> Any:  # noqa: ANN401 - a module
    spec = importlib.util.spec_from_file_location(f"warpsmith_{name}", _INJECTED.parent / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _run_hidden_sitecustomize() -> None:
    """Run the sitecustomize module that this one hides."""
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _INJECTED]
    hidden = PathFinder.find_spec("sitecustomize", sys.path)
    if hidden is not None and hidden.loader is not None:
        hidden.loader.exec_module(importlib.util.module_from_spec(hidden))


def _step_script() -> None:
    sys.meta_path.append(_PackageFinder())
    from warpsmith.program.scripts import script_loader

    settings = json.loads(Path(os.environ[_STEPS_VARIABLE]).read_text())
    sys.meta_path.insert(0, _TorchImport(script_loader.prepare_process(settings)))


if _STEPS_VARIABLE in os.environ:
    _run_hidden_sitecustomize()
    _step_script()
elif _RECORD_VARIABLE in os.environ:
    sys.meta_path.insert(0, _TorchImport(lambda: _record(Path(os.environ[_RECORD_VARIABLE]))))
    _run_hidden_sitecustomize()
