"""FlyDSL: one file with `run(...)`, its `@flyc.kernel`s and the `@flyc.jit` functions that launch them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from warpsmith.core.definition import Definition, Workload
from warpsmith.languages.base import Build, Listing, Run, SourcePattern
from warpsmith.languages.flydsl import source as flydsl_source
from warpsmith.languages.shared.compile_only import CompileOnly, read_listings
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES
from warpsmith.languages.shared.python_file import check_python_file, execute_file, has_amd_device
from warpsmith.languages.shared.python_source import normalise_python
from warpsmith.packages import install_command

_ERROR = re.compile(r"\b\w*(?:Error|Exception): ")


class FlyDsl(CompileOnly):
    """The language `flydsl`."""

    name = "flydsl"
    title = "FlyDSL"
    aliases = ("fly", "rocmflydsl")
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("gfx942", "gfx950")
    control = "layouts, LDS and matrix instructions of AMD by hand"
    product = "a FlyDSL kernel"
    source_patterns = (SourcePattern((".py",), r"^\s*(import|from)\s+flydsl\b"),)
    packages = ("flydsl",)
    compiler = "warpsmith.languages.flydsl.compile"
    compiled_architectures = tuple(AMD_ARCHITECTURES)
    texts = ("amdgcn",)
    replaces_instructions = False

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing. There is no interpreter for a CPU."""
        if lack := self.uninstalled():
            return lack
        if target_kind == "cpu":
            return "FlyDSL has no interpreter: without an AMD GPU its kernels are compiled, nothing more."
        if not has_amd_device():
            return "No AMD GPU: `warpsmith assembly` and `port` compile FlyDSL kernels, nothing judges them."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why a result without a GPU proves nothing at this workload: there is no interpreter."""
        return "FlyDSL has no interpreter: only an AMD GPU tells if a kernel is correct."

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""
        return flydsl_source.flydsl_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without comments, docstrings and layout."""
        return normalise_python(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return flydsl_source.lint_flydsl(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return check_python_file(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`, in the worker process only; compiled code goes to `build.cache`, or nowhere."""
        if build.cache is None:
            os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"
        else:
            os.environ["FLYDSL_RUNTIME_CACHE_DIR"] = str(build.cache / "flydsl")
        run: Run = execute_file(build.artifact).run
        return run

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make calls of jitted functions do nothing within the context; in the worker process only."""
        from warpsmith.languages.flydsl.calls import replaced_jit_calls

        with replaced_jit_calls(lambda *_: None):
            yield

    def architecture(self, name: str | None) -> str:
        """Return the architecture that kernels are compiled for, gfx942 by default.

        Raises:
            Misuse: kernels are not compiled for it.
        """
        return super().architecture(name or "gfx942")

    def port_architectures(self) -> tuple[str, ...]:
        """Return the architectures that it compiles for."""
        return self.compiled_architectures

    def assemble_relaunches(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[tuple[Listing, ...], ...]:
        """Compile what these workloads launch as the version says: its threads are part of its layouts.

        Raises as `assembly`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._compile(source, definition, workloads, arch, folder)
        return (read_listings(folder),)

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
        absent = [name for name in ("torch", "flydsl") if not is_installed(name)]
        if absent:
            return f"Python's {' and '.join(absent)} cannot be imported: run `{install_command('lab', 'flydsl')}`."
        return None

    def error_lines(self, output: list[str]) -> list[str]:
        """Select the error without the compiler's notes, its frames, and the warnings before it."""
        first = next((number for number, line in enumerate(output) if _ERROR.search(line)), 0)
        lines = [line for line in output[first:] if not line.startswith((" ", "DSL Traceback"))]
        return list(dict.fromkeys(lines))[:8]

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process."""
        return {
            "ARCH": arch,  # it outranks the next one
            "FLYDSL_GPU_ARCH": arch,
            "FLYDSL_RUNTIME_ENABLE_CACHE": "0",
            "FLYDSL_DEBUG_ENABLE_DEBUG_INFO": "1",  # source lines
        }


LANGUAGE = FlyDsl()


def is_installed(name: str) -> bool:
    """Return True if a package is installed; a mere folder of that name, such as that of the versions, is none."""
    spec = find_spec(name)
    return spec is not None and spec.origin is not None
