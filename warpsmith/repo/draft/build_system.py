"""Build system of a repository: the command that rebuilds, and the folder that Python finds the code in."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import PurePosixPath

from warpsmith.repo.draft.draft_line import DraftLine
from warpsmith.repo.draft.repository_files import RepositoryFiles
from warpsmith.repo.sources.native_sources import is_compiled

_TARGET = "build/warpsmith"
"""Folder that a package without an in-place build is installed to."""

_EXTENSION = re.compile(r"\b\w*Extension\(|\bcythonize\(|\bext[-_]modules\b")


@dataclass(frozen=True)
class BuildSystem:
    """Build of a repository."""

    rebuild: DraftLine | None
    """The rebuild command; None if nothing is built."""
    search_path: str
    """Value of PYTHONPATH for the commands; empty if there is no Python."""
    ctest: bool = False
    """True if the build registers tests of CTest."""


def find_build_system(files: RepositoryFiles, kernel: str) -> BuildSystem:
    """Find how the code of a kernel is built: by a Python build backend, setup.py, CMake, Meson or make."""
    source_folder = "src" if _has_source_layout(files) else "."
    if not is_compiled(kernel):
        packages = [folder for folder in PurePosixPath(kernel).parents if f"{folder}/__init__.py" in files.paths]
        return BuildSystem(None, str(packages[-1].parent) if packages else source_folder)
    backend, file = _backend(files)
    setup = next((path for path in files.paths if path == "setup.py"), None)
    if setup and _EXTENSION.search(files.text(setup)):
        line = _line_of(files.text(setup), _EXTENSION)
        names_kernel = PurePosixPath(kernel).name in files.text(setup)
        doubt = "" if names_kernel else f"setup.py does not name {kernel}; make sure that this builds it"
        command = "python setup.py -q build_ext --inplace"
        return BuildSystem(DraftLine("rebuild", command, f"setup.py, line {line}", doubt), source_folder)
    if backend:
        command = f"python -m pip install -q --no-deps --no-build-isolation --upgrade --target {_TARGET} ."
        doubt = f"{backend} has to be installed; add build/ to .gitignore, or each judgement builds from nothing"
        return BuildSystem(DraftLine("rebuild", command, f"{file}, build-backend {backend}", doubt), _TARGET)
    if "CMakeLists.txt" in files.paths:
        command = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build"
        ctest = any(
            re.search(r"\b(enable_testing|add_test|gtest_discover_tests)\s*\(", files.text(path))
            for path in files.list_named("CMakeLists.txt")
        )
        doubt = "options that the project needs are not read; add build/ to .gitignore, or each build is a new one"
        return BuildSystem(DraftLine("rebuild", command, "CMakeLists.txt", doubt), source_folder, ctest)
    if "meson.build" in files.paths:
        command = "test -d build || meson setup build --buildtype=release; meson compile -C build"
        doubt = "options that the project needs are not read; add build/ to .gitignore"
        return BuildSystem(DraftLine("rebuild", command, "meson.build", doubt), source_folder)
    if "Makefile" in files.paths:
        doubt = "the default target is assumed to build the kernel"
        return BuildSystem(DraftLine("rebuild", "make", "Makefile", doubt), source_folder)
    doubt = "no setup.py, pyproject.toml, CMakeLists.txt, meson.build or Makefile was found; write the command"
    return BuildSystem(DraftLine("rebuild", "echo write the rebuild command; false", "", doubt), source_folder)


def _backend(files: RepositoryFiles) -> tuple[str, str]:
    """Return the build backend of pyproject.toml and its place; empty if it names none."""
    if "pyproject.toml" not in files.paths:
        return "", ""
    text = files.text("pyproject.toml")
    try:
        table = tomllib.loads(text).get("build-system", {})
    except tomllib.TOMLDecodeError:
        return "", ""
    backend = table.get("build-backend") if isinstance(table, dict) else None
    line = _line_of(text, re.compile(r"build-backend"))
    return (str(backend), f"pyproject.toml, line {line}") if backend else ("", "")


def _has_source_layout(files: RepositoryFiles) -> bool:
    """Return whether packages lie in src/, which itself is none."""
    packages = any(re.fullmatch(r"src/[^/]+/__init__\.py", path) for path in files.paths)
    return packages and "src/__init__.py" not in files.paths


def _line_of(text: str, pattern: re.Pattern[str]) -> int:
    match = pattern.search(text)
    return text.count("\n", 0, match.start()) + 1 if match else 1
