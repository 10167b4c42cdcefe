"""cuTile: one file with `run(...)` and its `@ct.kernel` functions, compiled by tileiras at their first launch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Run, SourcePattern
from warpsmith.languages.cutile import kernel_store
from warpsmith.languages.cutile import source as cutile_source
from warpsmith.languages.cutile.launches import LaunchControl
from warpsmith.languages.shared import python_file
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.python_source import normalise_python
from warpsmith.packages import install_command

_COMPILER = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")
"""Packages of the compiler, which must be of one release."""


_launches = LaunchControl()


class CuTile(CompileOnly):
    """The language `cutile`."""

    name = "cutile"
    title = "cuTile"
    aliases = ("cutiledsl", "cudatile")
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("sm_80+",)
    control = "the tile compiler of CUDA"
    product = "a cuTile kernel"
    source_patterns = (SourcePattern((".py",), r"^\s*import\s+cuda\.tile\b|^\s*from\s+cuda(\.tile)?\s+import\b"),)
    packages = ("cuda-tile", *_COMPILER)
    compiler = "warpsmith.languages.cutile.compile"
    texts = ("sass",)

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing. There is no interpreter for a CPU."""
        if lack := missing_tileiras():
            return lack
        if target_kind == "cpu":
            return "cuTile has no interpreter: its kernels are compiled here, and judged only on a GPU."
        if not python_file.has_cuda_device():
            return "No CUDA device: the kernels can be compiled here, not run."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why a result without a GPU proves nothing at this workload: there is no interpreter."""
        return f"cuTile has no interpreter: `{workload.name}` needs a GPU to be judged."

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""
        return cutile_source.cutile_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without comments, docstrings and layout."""
        return normalise_python(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return cutile_source.lint_cutile(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first launch.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return python_file.check_python_file(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`; a worker's kernels go to files, a user's to cuTile's own cache."""
        _launches.install()
        if build.cache is None:
            kernel_store.keep_kernels_as_files()
        run: Run = python_file.execute_file(build.artifact).run
        return run

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make kernel launches do nothing within the context; in the worker process only."""
        _launches.install()
        _launches.suppressed = True
        try:
            yield
        finally:
            _launches.suppressed = False

    def compile_ahead(self, calls: Iterable[Callable[[], object]], threads: int) -> int:
        """Compile in parallel what the calls would launch, without a launch; return the number of kernels."""
        _launches.install()
        return _launches.compile_ahead(calls, threads)

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return reports from the cubins of this process's kernels; nothing if the disassemblers are missing."""
        return _launches.reports()

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
        return missing_tileiras()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process."""
        return {kernel_store.VARIABLE: str(folder / "cache")}


LANGUAGE = CuTile()


def missing_tileiras() -> str | None:
    """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
    modules = [name for name in ("torch", "cuda.tile") if not python_file.is_importable(name)]
    if modules:
        return f"Python's {' and '.join(modules)} cannot be imported: run `{install_command('lab', 'cutile')}`."
    versions = {name: _version(name) for name in _COMPILER}
    releases = {".".join(number.split(".")[:2]) for number in versions.values() if number}
    if all(versions.values()) and len(releases) == 1:
        return None
    if all(versions.values()):
        packages = ", ".join(f"{name} {number}" for name, number in versions.items())
        return f"cuTile takes its compiler from packages of one release; these differ: {packages}."
    homes = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    if any(shutil.which("tileiras", path=path) for path in (None, *map(str, homes))):
        return None
    return f"cuTile's compiler `tileiras` is missing: run `{install_command('cutile')}`, or install CUDA 13.3+."


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
