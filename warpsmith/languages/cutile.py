"""cuTile: one file with `run(...)` and its `@ct.kernel` functions, compiled by tileiras at their first launch."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages import cutile_source, tool, triton, triton_source
from warpsmith.languages.base import Build, BuildFailed, Language, Listing, Run

ARCHITECTURES = tuple(triton.ARCHITECTURES)
"""What `inspect` compiles for, by the names that the lab uses; tileiras makes sm_90a of its own `sm_90`."""

_COMPILER = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")
_SECONDS = 120.0


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


class CuTile:
    """The language `cutile`."""

    name = "cutile"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready. There is no interpreter for a CPU."""
        if lacks := lacking():
            return lacks
        if target_kind == "cpu":
            return "cuTile has no interpreter: its kernels are compiled here, and judged on a GPU alone."
        if not Path("/dev/nvidiactl").exists():
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
        return triton.LANGUAGE.build(source, definition, folder)

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only."""
        _launches.route()
        run: Run = triton.execute(build.artifact).run
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

        from warpsmith.languages import cutile_cubin

        if not _launches.compiled or cutile_cubin.lacking():
            return ()
        found = []
        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            path = Path(folder) / "kernel.cubin"
            for kernel, cubin in _launches.compiled:
                path.write_bytes(cubin)
                found.append(cutile_cubin.report(path, kernel._pyfunc.__name__, launch_note(kernel)))
        return tuple(dict.fromkeys(found))

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` launches on the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            MachineLacks: cuTile, its compiler or the disassembler is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import tempfile

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            return _compile_only(source, definition, arch, Path(folder))

    def architecture(self, asked: str | None) -> str:
        """The architecture as its kernels are compiled for: `sm_90` is `sm_90a`.

        Raises:
            Misuse: it is not of `ARCHITECTURES`.
        """
        if asked is None:
            return "sm_90a"
        found = next((arch for arch in ARCHITECTURES if arch.removesuffix("a") == asked.removesuffix("a")), None)
        if found is None:
            raise _unknown(asked)
        return found

    def assembly(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[Listing, ...]:
        """SASS of every specialisation that `run` launches at these workloads; no device is needed.

        It is written as `<kernel>.<arch>.sass`; files of an earlier call go.

        Raises:
            BuildFailed: `run` or a kernel fails, launches nothing, or takes more than two minutes.
            MachineLacks: cuTile, its compiler or the disassembler is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import json
        import tempfile

        from warpsmith import files

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            made = Path(temporary)
            reports = _compile_only(source, definition, arch, made, workloads)
            launches = json.loads((made / "launches.json").read_text())
            texts = {path.name: path.read_bytes() for path in sorted(made.glob("*.sass"))}
        for name, text in texts.items():
            files.write(folder / name, text)
        for path in folder.glob(f"*.{arch}.sass"):
            if path.name not in texts:
                path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))


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


def _unknown(arch: str) -> Misuse:
    return Misuse(
        f"`{arch}` is no architecture that cuTile kernels are inspected for: {', '.join(ARCHITECTURES)}."
    )


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa="sass",
        assembly=folder / f"{launch['stem']}.sass",
        resources=report,
        unaligned=tuple(launch["unaligned"]),
        matrix_product=launch["matrix_product"],
    )


def _compile_only(
    source: Path, definition: Definition, arch: str, folder: Path, workloads: Sequence[Workload] = ()
) -> tuple[Resources, ...]:
    """In a process of its own: the driver that it pretends to have stays there, and it can be killed."""
    import json

    if arch not in ARCHITECTURES:
        raise _unknown(arch)
    if lacks := lacking():
        raise MachineLacks(lacks)
    LANGUAGE.build(source, definition, folder)
    request = {
        "source": str(source.resolve()),
        "definition": definition.model_dump(mode="json"),
        "arch": arch,
        "workloads": [workload.name for workload in workloads or definition.select("representative")[:1]],
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [sys.executable, "-P", "-m", "warpsmith.languages.cutile_compile", str(folder)]
    environment = {"CUDA_VISIBLE_DEVICES": "", "CUDA_TILE_CACHE_DIR": str(folder / "cache")}
    try:
        ended = tool.run(command, _SECONDS, environment=environment)
    except TimeoutError as error:
        raise BuildFailed(f"{source.name} was not compiled for {arch}: {error}.") from error
    lacks_file = folder / "lacks.txt"
    if lacks_file.is_file():
        raise MachineLacks(lacks_file.read_text())
    if ended.code != 0:
        said = [line for line in ended.output.splitlines() if line.strip()]
        raise BuildFailed(f"{source.name} does not compile for {arch}.\n{tool.fenced(said[-8:])}")
    found = json.loads((folder / "resources.json").read_text())
    return tuple(Resources.model_validate(resource) for resource in found)
