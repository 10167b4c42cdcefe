"""CuTe DSL: one file with `run(...)`, its `@cute.kernel`s and what compiles them. There is no interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Language, Run
from warpsmith.languages.cutedsl import source as cutedsl_source
from warpsmith.languages.shared import python_file
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.python_file import has_device
from warpsmith.languages.triton import language as triton
from warpsmith.languages.triton import source as triton_source

ARCHITECTURES = {"sm_80": "sm_80", "sm_89": "sm_89", "sm_90a": "sm_90a", "sm_100": "sm_100a"}
"""What `inspect` compiles for, with the name that CuTe DSL has for it."""

_INSTALL = "pip install 'warpsmith[lab,triton,cute]'"


class CuteDsl(CompileOnly):
    """The language `cutedsl`."""

    name = "cutedsl"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)
    kernels_are = "CuTe DSL kernels are"
    compiler = "warpsmith.languages.cutedsl.compile"
    architectures = ARCHITECTURES
    seconds = 180.0

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready. Without a GPU kernels can only be compiled."""
        if lacking := _uninstalled():
            return lacking
        if target_kind == "cpu":
            return "CuTe DSL has no interpreter: without a GPU it compiles (`warpsmith assembly`), nothing more."
        if not has_device():
            return "No CUDA device: `warpsmith assembly` compiles CuTe DSL's kernels here, nothing judges them."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Why an interpreter's result says nothing at this workload: there is none."""
        return "CuTe DSL has no interpreter: only a GPU tells whether a kernel is right."

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""
        return cutedsl_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without comments, docstrings and layout."""
        return triton_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return cutedsl_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return python_file.check(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`; what it compiles goes to `build.kept`, and in the gate's worker to `resources`."""
        if build.kept is not None:
            from warpsmith.languages.cutedsl import kept as cutedsl_kept

            kept: Run = cutedsl_kept.execute(build.artifact, build.kept / "cutedsl").run
            return kept
        import tempfile

        from warpsmith.languages.cutedsl import calls as cutedsl_calls

        # Read when cutlass is imported. Without the binary nothing is known of a compiled kernel.
        os.environ |= {
            "CUTE_DSL_KEEP": "cubin,ptx",
            "CUTE_DSL_DUMP_DIR": tempfile.mkdtemp(prefix="warpsmith-cutedsl-"),
        }
        cutedsl_calls.listen()
        run: Run = python_file.execute(build.artifact).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, calls of compiled functions do nothing; in the worker process only."""
        from warpsmith.languages.cutedsl import calls as cutedsl_calls

        with cutedsl_calls.answered(lambda _: None):
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that was compiled; nothing before the first call."""
        if "cutlass" not in sys.modules:
            return ()
        from warpsmith.languages.cutedsl import calls as cutedsl_calls
        from warpsmith.languages.cutedsl import report as cutedsl_report

        known = list(getattr(run, "__globals__", {}))
        found = (one for made in cutedsl_calls.made() for one in cutedsl_report.loaded(made, known))
        return tuple(dict.fromkeys(found))

    def uninstalled(self) -> str | None:
        """What compiling needs and this machine lacks, in one sentence; None: nothing."""
        return _uninstalled() or triton.LANGUAGE.missing("cpu")

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Variables of the child; CuTe DSL reads them once."""
        return {
            "CUTE_DSL_ARCH": ARCHITECTURES[arch],
            "CUTE_DSL_CACHE_DIR": str(folder / "cache"),
            "CUTE_DSL_DUMP_DIR": str(folder / "kept"),
            "CUTE_DSL_KEEP": "cubin,ptx",
            "CUTE_DSL_LINEINFO": "1",
            "PYTHONWARNINGS": "ignore",  # it warns that what is kept is not cached
        }


LANGUAGE: Language = CuteDsl()


def _uninstalled() -> str | None:
    """What is not installed, in one sentence; found without importing it."""
    needed = {"torch": "torch", "cutlass": "nvidia-cutlass-dsl", "tvm_ffi": "apache-tvm-ffi"}
    lacking = [package for module, package in needed.items() if find_spec(module) is None]
    if lacking:
        return f"{' and '.join(lacking)} cannot be imported: {_INSTALL}."
    spec = find_spec("cutlass")
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    if not any(found for root in roots for found in root.glob("_mlir/_mlir_libs/_cutlass_ir.cu13*")):
        return f"CuTe DSL is here without its libraries for CUDA 13: {_INSTALL}."
    return None
