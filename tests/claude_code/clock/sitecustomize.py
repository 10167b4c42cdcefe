"""Scripted times for the `warpsmith` that Claude Code starts: a `volatile` loop takes ten times as long as others.

Python imports this file at its start where its folder is on `PYTHONPATH`; workers do not get that variable.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

SESSION = "warpsmith.lab.timing.session"


class _AfterImport:
    """Installs the clock when the module of sessions has been imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != SESSION:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: object) -> None:
            execute(module)
            sys.modules[name] = module
            sys.path.insert(0, str(Path(__file__).parents[2] / "lab"))
            import session_clock

            sys.path.pop(0)
            session_clock.use_scripted_clock(setattr, lambda source: 1e-3 if "volatile" in source else 1e-4)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _AfterImport())
