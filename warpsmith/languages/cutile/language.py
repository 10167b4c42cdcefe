"""cuTile: one file with `run(...)` and its `@ct.kernel` functions, compiled by tileiras at their first launch."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Language, Run
from warpsmith.languages.cutile import source as cutile_source
from warpsmith.languages.shared import python_file
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.python_file import has_device
from warpsmith.languages.triton import language as triton
from warpsmith.languages.triton import source as triton_source

ARCHITECTURES = tuple(triton.ARCHITECTURES)
"""What `inspect` compiles for, by the names that the lab uses; tileiras makes sm_90a of its own `sm_90`."""

_COMPILER = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")


class _Launches:
    """What this process's kernels go through: a switch that holds them back, and what was compiled."""

    def __init__(self) -> None:
        self.held = False
        self.compiled: list[tuple[Any, bytes]] = []
        self._routed = False

    def route(self) -> None:
        """From here on every `ct.launch` of this process passes here."""
        if self._routed:
            return
        tile: Any = importlib.import_module("cuda.tile")
        launch, compile_one = tile.launch, tile.kernel._compile

        def launched(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - cuTile's own arguments
            if not self.held:
                launch(*args, **kwargs)

        def compiled(kernel: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            made = compile_one(kernel, *args, **kwargs)
            self.compiled.append((kernel, made[0]))
            return made

        tile.launch, tile.kernel._compile = launched, compiled
        self._routed = True


_launches = _Launches()


class CuTile(CompileOnly):
    """The language `cutile`."""

    name = "cutile"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)
    kernels_are = "cuTile kernels are"
    compiler = "warpsmith.languages.cutile.compile"
    architectures = ARCHITECTURES
    texts = ("sass",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready. There is no interpreter for a CPU."""
        if lacks := lacking():
            return lacks
        if target_kind == "cpu":
            return "cuTile has no interpreter: its kernels are compiled here, and judged on a GPU alone."
        if not has_device():
            return "No CUDA device: the kernels can be compiled here, not run."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Why an interpreter's result says nothing at this workload: there is no interpreter."""
        return f"cuTile has no interpreter: `{workload.name}` needs a GPU to be judged."

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""
        return cutile_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without comments, docstrings and layout."""
        return triton_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return cutile_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature, as for any file of Python; kernels are compiled at their first launch.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return python_file.check(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only."""
        _launches.route()
        run: Run = python_file.execute(build.artifact).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""
        _launches.route()
        _launches.held = True
        try:
            yield
        finally:
            _launches.held = False

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the cubins of this process's kernels say; nothing where the tools that read them are missing."""
        import tempfile

        from warpsmith.languages.cutile import cubin as cutile_cubin

        if not _launches.compiled or cutile_cubin.lacking():
            return ()
        found = []
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            path = Path(folder) / "kernel.cubin"
            for kernel, cubin in _launches.compiled:
                path.write_bytes(cubin)
                found.append(cutile_cubin.report(path, kernel._pyfunc.__name__, launch_note(kernel)))
        return tuple(dict.fromkeys(found))

    def uninstalled(self) -> str | None:
        """What compiling needs and this machine lacks, in one sentence; None: nothing."""
        return lacking()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Variables of the child."""
        return {"CUDA_TILE_CACHE_DIR": str(folder / "cache")}


LANGUAGE: Language = CuTile()


def lacking() -> str | None:
    """What compiling needs and this machine lacks, in one sentence; None: nothing."""
    names = [name for name in ("torch", "cuda.tile") if not _importable(name)]
    if names:
        return f"Python's {' and '.join(names)} cannot be imported: pip install 'warpsmith[lab,cutile]'."
    found = {name: _version(name) for name in _COMPILER}
    releases = {".".join(each.split(".")[:2]) for each in found.values() if each}
    if all(found.values()) and len(releases) == 1:
        return None
    if all(found.values()):
        named = ", ".join(f"{name} {each}" for name, each in found.items())
        return f"cuTile takes its compiler from packages of one release; these differ: {named}."
    homes = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    if any(shutil.which("tileiras", path=path) for path in (None, *map(str, homes))):
        return None
    return "cuTile's compiler `tileiras` is missing: pip install 'warpsmith[cutile]', or CUDA 13.3 or later."


def launch_note(kernel: Any) -> str:  # noqa: ANN401 - cuTile publishes no types
    """The kernel's hints to the compiler."""
    hints = kernel._compiler_options
    named = {name: getattr(hints, name) for name in ("num_worker_warps", "occupancy", "num_ctas")}
    return ", ".join(f"{name} {'auto' if value is None else value}" for name, value in named.items())


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package that would hold it is missing too
        return False


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
