"""In the processes of a command: a Trainer of Hugging Face without the folder that it would write.

It makes its output folder before the first step and saves checkpoints there. Where that folder may not be written,
it gets a temporary one, and saves none: both are settings of it, and no step reads them.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from warpsmith.program.scripts.write_guard import WriteGuard

_MODULE = "transformers.training_args"


class TrainerFolderFinder(MetaPathFinder):
    """Import hook that changes the settings of every Trainer, once their module is imported."""

    def __init__(self, guard: WriteGuard, temporary: str) -> None:
        """Keep folders that a guard lets the script write, and put others into a temporary one."""
        self._guard, self._temporary = guard, temporary

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the settings' module, and None for other modules."""
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = spec and spec.loader
        if loader is not None:
            loader.exec_module = functools.partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Any, module: Any) -> None:  # noqa: ANN401 - a loader's method
        execute(module)
        kind = module.TrainingArguments
        original = kind.__post_init__

        @functools.wraps(original)
        def post_init(settings: Any) -> None:  # noqa: ANN401 - the Trainer's
            original(settings)
            if self._guard.refuses(settings.output_dir):
                settings.output_dir = tempfile.mkdtemp(prefix="trainer-", dir=self._temporary)
                settings.save_strategy = type(settings.save_strategy)("no")

        kind.__post_init__ = post_init
