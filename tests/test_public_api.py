"""Public interface: every name of the root imports, and old paths give the same objects."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import warpsmith
from warpsmith.interchange import template, trace_text
from warpsmith.interchange.pytorch import definition_text

pytest.importorskip("torch")

SHIMS = [
    ("warpsmith.lab.peers", "Peer", "warpsmith", "Peer"),
    ("warpsmith.lab.importers.beside", "beside", "warpsmith", "load_sibling"),
    ("warpsmith.program.integrated", "enable", "warpsmith", "enable"),
    ("warpsmith.lab.peer_libraries", "vllm", "warpsmith.lab.operator.peer_libraries", "vllm"),
    ("warpsmith.lab.peer_libraries", "VLLM", "warpsmith.lab.operator.peer_libraries", "VLLM"),
    ("warpsmith.core.definition", "Definition", "warpsmith", "Definition"),
    ("warpsmith.core.definition", "ScalarSpec", "warpsmith", "ScalarSpec"),
    ("warpsmith.core.definition", "TensorSpec", "warpsmith", "TensorSpec"),
    ("warpsmith.core.definition", "Tolerance", "warpsmith", "Tolerance"),
    ("warpsmith.core.definition", "Workload", "warpsmith", "Workload"),
]
"""Old module and name, new module and name; definitions on disk import the old ones."""


@pytest.mark.parametrize("name", warpsmith.__all__)
def test_each_public_name_imports_from_the_root(name: str) -> None:
    line = f"from warpsmith import {name}; print({name}.__name__)"
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, name), run.stderr


def test_public_names_are_sorted_and_documented_for_type_checkers() -> None:
    tree = ast.parse(Path(warpsmith.__file__).read_text())
    imported = {
        alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(warpsmith.__all__) == sorted(imported) == sorted(warpsmith._MODULES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `nothing`"):
        _ = warpsmith.nothing  # type: ignore[attr-defined]


def test_the_root_imports_no_torch() -> None:
    """Commands and hooks start without PyTorch."""
    line = "import sys, warpsmith; print('torch' in sys.modules, 'pydantic' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(("old_module", "old", "new_module", "new"), SHIMS)
def test_an_old_path_gives_the_same_object(old_module: str, old: str, new_module: str, new: str) -> None:
    shim = getattr(importlib.import_module(old_module), old)
    assert shim is getattr(importlib.import_module(new_module), new)


def test_an_old_module_is_reachable_as_definitions_import_it() -> None:
    from warpsmith.lab import peer_libraries

    assert peer_libraries.vllm.__module__ == "warpsmith.lab.operator.peer_libraries"


@pytest.mark.parametrize("module", [template, definition_text, trace_text])
def test_files_of_users_import_from_the_root_alone(module: object) -> None:
    texts = [value for value in vars(module).values() if isinstance(value, str) and "import" in value]
    lines = [line for text in texts for line in text.splitlines() if "warpsmith" in line and "import " in line]
    imports = [line for line in lines if line.startswith(("from warpsmith", "import warpsmith"))]
    assert imports
    assert all(line.startswith("from warpsmith import ") for line in imports)
