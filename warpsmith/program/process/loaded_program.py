"""In the program's process: the program, imported and ready to run its step."""

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
    """Refusal to run a program as it was named; the message is for the user."""


class LoadedProgram:
    """The program in its own process. Tasks get it as their first argument."""

    def __init__(self, message: Message) -> None:
        self.path = Path(message["path"])
        """File of the program."""
        self.name: str = message["step"]
        """Name of its step."""
        self.label: str = message["label"]
        """Name of the program in messages."""
        self.seed: int = message["seed"]
        """Seed of random, numpy and torch."""
        self.next_step = 0
        """Number of the step that `step` runs next."""
        self.module: ModuleType
        """Module of the program, once `load` has run."""
        self.setup_result: Any = None
        """Result of its setup."""
        self.values: list[dict[str, Any]] = []
        """Values of the steps of the last request `run`."""
        self._message = message
        self._call: Callable[[], object]

    def load(self) -> None:
        """Import the program and call its setup.

        Raises:
            ProgramRefused: it has no such step or setup, or these need other arguments.
            BaseException: any error of the program.
        """
        from warpsmith.program.process import gather

        copies = {Path(path): Path(copy) for path, copy in self._message["original"].items()}
        sys.argv[:] = [str(self.path), *self._message["args"]]
        sys.path.insert(0, self._message["folder"])
        hook = OriginalsFinder(Path(self._message["folder"]), copies)
        hook.install()
        gather.record_compile_calls()
        self.seed_generators()
        self.module = self._import(hook)
        step = self._find_callable(self.name, "step")
        setup = self._message["setup"]
        if setup:
            function = self._find_callable(setup, "setup")
            required = _required_arguments(function)
            if required:
                raise ProgramRefused(
                    f"its setup `{setup}` needs arguments ({', '.join(required)}); give one that needs none"
                )
            self.setup_result = function()
        self._call = self._bind(step, bool(setup))
        self.seed_generators()

    def step(self) -> object:
        """Run one step and return its value. A process that the step forked ends here."""
        process = os.getpid()
        value = self._call()
        if os.getpid() != process:
            os._exit(0)
        self.next_step += 1
        return value

    def seed_generators(self) -> None:
        """Seed random, numpy and torch."""
        import torch

        random.seed(self.seed)
        torch.manual_seed(self.seed)
        with contextlib.suppress(ImportError):
            import numpy as np

            np.random.seed(self.seed % 2**32)

    def modules(self) -> dict[str, Any]:
        """Return the program's outermost modules by name."""
        from warpsmith.program.process import values

        return values.find_modules(vars(self.module), self.setup_result)

    def _import(self, hook: OriginalsFinder) -> ModuleType:
        dotted = self._message["module"]
        if dotted:
            return importlib.import_module(dotted)
        stem = self.path.stem
        name = stem if stem.isidentifier() and stem not in sys.modules else f"program_{stem}"
        spec = hook.spec(name, self.path)
        if spec is None or spec.loader is None:
            raise ProgramRefused("it is not a Python file")
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def _find_callable(self, name: str, role: str) -> Callable[..., object]:
        """Return a module-level callable; `role` says in the error whether it is the step or the setup."""
        value = getattr(self.module, name, None)
        if callable(value):
            return value  # type: ignore[no-any-return]
        functions = [
            key
            for key, value in vars(self.module).items()
            if inspect.isfunction(value) and value.__module__ == self.module.__name__ and not key.startswith("_")
        ]
        choice = f"it has {', '.join(functions[:8])}" if functions else "it has no function at all"
        raise ProgramRefused(f"it has no {role} `{name}`: {choice}; give one of its module-level callables")

    def _bind(self, step: Callable[..., object], with_setup: bool) -> Callable[[], object]:
        """Return the step with its arguments bound: the setup's results, or the number of the step."""
        if with_setup:
            results = self.setup_result if isinstance(self.setup_result, tuple) else (self.setup_result,)
            try:
                inspect.signature(step).bind(*results)
            except TypeError as error:
                raise ProgramRefused(
                    f"its step `{self.name}` does not take the {len(results)} results of its setup ({error})"
                ) from error
            except ValueError:
                pass  # a callable without a signature
            return lambda: step(*results)
        required = _required_arguments(step)
        if len(required) > 1:
            raise ProgramRefused(
                f"its step `{self.name}` needs arguments ({', '.join(required)}); give --setup NAME of a function "
                "that returns them"
            )
        return (lambda: step(self.next_step)) if required else step


def _required_arguments(function: Callable[..., object]) -> list[str]:
    """List the names of arguments without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [item.name for item in parameters if item.default is item.empty and item.kind in (*positional, keyword)]
