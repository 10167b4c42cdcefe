"""The program inside its own process: loaded, bound to its step, ready to run."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import random
import sys
from collections.abc import Callable
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from warpsmith.lab.workers.channel import Message
from warpsmith.program.process.originals import OriginalsFinder


class ProgramRefused(Exception):
    """The program is not one that can be run so; the words are for the user."""


class LoadedProgram:
    """The program in this process. Tasks get it as their first argument."""

    def __init__(self, message: Message) -> None:
        self.path = Path(message["path"])
        """The program's file."""
        self.name: str = message["step"]
        """Its step's name."""
        self.label: str = message["label"]
        """What people call the program."""
        self.seed: int = message["seed"]
        """Of random, numpy and torch."""
        self.next = 0
        """Number of the step that `step` runs next."""
        self.module: ModuleType
        """The program's module, after `load`."""
        self.given: Any = None
        """What its setup returned."""
        self.values: list[dict[str, Any]] = []
        """What the last `run` kept of its steps' values."""
        self._message = message
        self._call: Callable[[], object]

    def load(self) -> None:
        """Import the program and call its setup.

        Raises:
            Refused: it has no such step or setup, or these need other arguments.
            BaseException: whatever it raises.
        """
        from warpsmith.program.process import gather

        copies = {Path(path): Path(copy) for path, copy in self._message["original"].items()}
        sys.argv[:] = [str(self.path), *self._message["args"]]
        sys.path.insert(0, self._message["folder"])
        hook = OriginalsFinder(copies)
        hook.install()
        gather.record_compile_calls()
        self.sow()
        self.module = self._imported(hook)
        step = self._callable(self.name, "step")
        setup = self._message["setup"]
        if setup:
            needed = _required_arguments(ready := self._callable(setup, "setup"))
            if needed:
                raise ProgramRefused(
                    f"its setup `{setup}` needs arguments ({', '.join(needed)}); one without is called"
                )
            self.given = ready()
        self._call = self._bound(step, bool(setup))
        self.sow()

    def step(self) -> object:
        """Run one step; what it returns. A copy of the process that it forked ends here."""
        mine = os.getpid()
        value = self._call()
        if os.getpid() != mine:
            os._exit(0)
        self.next += 1
        return value

    def sow(self) -> None:
        """Seed random, numpy and torch."""
        import torch

        random.seed(self.seed)
        torch.manual_seed(self.seed)
        with contextlib.suppress(ImportError):
            import numpy as np

            np.random.seed(self.seed % 2**32)

    def modules(self) -> dict[str, Any]:
        """The program's outermost nn.Modules by name."""
        from warpsmith.program.process import values

        return values.find_modules(vars(self.module), self.given)

    def _imported(self, hook: OriginalsFinder) -> ModuleType:
        given = self._message["module"]
        if given:
            return importlib.import_module(given)
        stem = self.path.stem
        name = stem if stem.isidentifier() and stem not in sys.modules else f"program_{stem}"
        spec = hook.spec(name, self.path)
        if spec is None or spec.loader is None:
            raise ProgramRefused("it is no Python file")
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def _callable(self, name: str, what: str) -> Callable[..., object]:
        found = getattr(self.module, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
        own = [
            key
            for key, value in vars(self.module).items()
            if inspect.isfunction(value) and value.__module__ == self.module.__name__ and not key.startswith("_")
        ]
        there = f"it has {', '.join(own[:8])}" if own else "it has no function at all"
        raise ProgramRefused(f"it has no {what} `{name}`: {there}; give one of its module-level callables")

    def _bound(self, step: Callable[..., object], with_setup: bool) -> Callable[[], object]:
        """The step without arguments left to give."""
        if with_setup:
            given = self.given if isinstance(self.given, tuple) else (self.given,)
            try:
                inspect.signature(step).bind(*given)
            except TypeError as error:
                raise ProgramRefused(
                    f"its step `{self.name}` does not take the {len(given)} results of its setup ({error})"
                ) from error
            except ValueError:
                pass  # a callable that does not say what it takes
            return lambda: step(*given)
        needed = _required_arguments(step)
        if len(needed) > 1:
            raise ProgramRefused(
                f"its step `{self.name}` needs arguments ({', '.join(needed)}); give --setup NAME of a function "
                "that returns them"
            )
        return (lambda: step(self.next)) if needed else step


def _required_arguments(what: Callable[..., object]) -> list[str]:
    """Names of the positional arguments that must be given."""
    try:
        parameters = inspect.signature(what).parameters.values()
    except ValueError:
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [each.name for each in parameters if each.default is each.empty and each.kind in (*positional, keyword)]
