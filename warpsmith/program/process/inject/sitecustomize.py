"""What every Python of a shell command imports first, while `warpsmith program analyze --command` runs it.

Once PyTorch has been imported it is recorded until the process ends; then its trace and its facts are written. The
environment may have no Warpsmith: the two modules that are needed come by their paths.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_FOLDER = "WARPSMITH_RECORD"


class _After(MetaPathFinder, Loader):
    """Finds PyTorch as usual, and begins to record when it has been imported."""

    def __init__(self) -> None:
        self._original: Any = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """PyTorch's spec, with this as its loader."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            self._original, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As PyTorch's own loader does."""
        found: ModuleType | None = self._original.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        """The same; then record."""
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._original
        self._original.exec_module(module)
        _record(Path(os.environ[_FOLDER]))


def _record(folder: Path) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    gather, recorder = _load("gather"), _load("recorder")
    gather.watch_compile()
    stack, mine = ExitStack(), os.getpid()
    found = stack.enter_context(recorder.recording(record_shapes=True))
    facts: dict[str, Any] = {}
    looking: list[float] = []

    def look(*_: object) -> None:
        """At the first optimizer step: what a function holds is gone when it has returned."""
        if not looking:
            begin = time.perf_counter()
            facts.update(gather.facts())
            looking.append(time.perf_counter() - begin)

    def end() -> None:
        if os.getpid() != mine:
            return
        stack.close()
        told = {**(facts or gather.facts()), **gather.memory(), "observed": recorder.observed(found)}
        trace = folder / f"{mine}.json.gz"
        found.profiler.export_chrome_trace(str(trace))
        trace.with_name(f"{mine}.facts").write_text(json.dumps(told))

    register_optimizer_step_post_hook(look)
    atexit.register(end)


def _load(name: str) -> Any:  # noqa: ANN401 - a module
    spec = importlib.util.spec_from_file_location(f"warpsmith_{name}", _HERE.parent / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _go_on() -> None:
    """Run the sitecustomize that this one hides."""
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != _HERE]
    hidden = PathFinder.find_spec("sitecustomize", sys.path)
    if hidden is not None and hidden.loader is not None:
        hidden.loader.exec_module(importlib.util.module_from_spec(hidden))


if _FOLDER in os.environ:
    sys.meta_path.insert(0, _After())
    _go_on()
