"""Benchmarks as modules: they are scripts, and no package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from warpsmith.project import SHIPPED


@pytest.fixture(scope="session")
def load_benchmark() -> Iterator[Callable[[str], ModuleType]]:
    """Execute a benchmark by its name and return its module, which classes of data look up by that name."""
    with pytest.MonkeyPatch.context() as patch:

        def load(name: str) -> ModuleType:
            spec = importlib.util.spec_from_file_location(name, SHIPPED / "benchmarks" / f"{name}.py")
            assert spec
            assert spec.loader
            module = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, name, module)
            spec.loader.exec_module(module)
            return module

        yield load
