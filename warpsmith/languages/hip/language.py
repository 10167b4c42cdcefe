"""HIP C++: one Python file whose strings hold the kernels; PyTorch's runtime compiler builds and launches them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from warpsmith.core.definition import Definition, Workload
from warpsmith.languages.base import Build, Listing, Run, SourcePattern
from warpsmith.languages.hip import source as hip_source
from warpsmith.languages.hip.compiler import describe_hip_compiler, missing_hip_compiler
from warpsmith.languages.shared import kernel_strings
from warpsmith.languages.shared.compile_only import CompileOnly, read_listings
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES
from warpsmith.languages.shared.python_file import check_python_file, execute_file, has_amd_device

_CPP = (".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cu", ".cuh")
_ERROR = re.compile(r"\b(?:fatal )?error: ")


class Hip(CompileOnly):
    """The language `hip`."""

    name = "hip"
    title = "HIP C++"
    aliases = ("hipcpp", "rocmhip", "hipcc", "rocm")
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("gfx942", "gfx950")
    control = "LDS, lane moves and matrix instructions of AMD by hand"
    product = "a HIP C++ kernel"
    source_patterns = (
        SourcePattern((".hip",)),
        SourcePattern((".py", *_CPP), r"^\s*#\s*include\s*<hip/"),
    )
    packages = ("ziglang",)
    compiler = "warpsmith.languages.hip.compile"
    compiled_architectures = tuple(AMD_ARCHITECTURES)
    texts = ("amdgcn",)
    replaces_instructions = False

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing. There is no interpreter for a CPU."""
        if lack := self.uninstalled():
            return lack
        if target_kind == "cpu":
            compiler = describe_hip_compiler()
            return f"HIP C++ has no interpreter: {compiler} compiles its kernels, and only an AMD GPU runs them."
        if not has_amd_device():
            return "No AMD GPU: `warpsmith assembly` and `port` compile HIP C++ kernels, nothing judges them."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why a result without a GPU proves nothing at this workload: there is no interpreter."""
        return "HIP C++ has no interpreter: only an AMD GPU tells if a kernel is correct."

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: a kernel, the code that compiles it, and a `run` to fill in."""
        return hip_source.hip_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without docstrings, layout and comments, those of the kernels included."""
        return kernel_strings.normalise_kernels(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return hip_source.lint_hip(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return check_python_file(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`, in the worker process only."""
        run: Run = execute_file(build.artifact).run
        return run

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make calls of compiled kernels do nothing within the context; in the worker process only."""
        from unittest.mock import patch

        with patch("torch.cuda._utils._CudaKernel.__call__", lambda *_, **__: None):
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
        """Compile what these workloads launch as the version says: its threads are part of its source.

        Raises as `assembly`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._compile(source, definition, workloads, arch, folder)
        return (read_listings(folder),)

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
        return missing_hip_compiler()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process."""
        return {"TMPDIR": str(folder)}

    def error_lines(self, output: list[str]) -> list[str]:
        """Select the lines from the first error on."""
        first = next((number for number, line in enumerate(output) if _ERROR.search(line)), 0)
        return output[first:]


LANGUAGE = Hip()
