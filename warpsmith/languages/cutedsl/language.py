"""CuTe DSL: one file with `run(...)`, its `@cute.kernel`s and the code that compiles them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Run, SourcePattern
from warpsmith.languages.cutedsl import source as cutedsl_source
from warpsmith.languages.shared import stamp_table, stamps
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.disassembly import missing_triton
from warpsmith.languages.shared.python_file import check_python_file, execute_file, has_cuda_device
from warpsmith.languages.shared.python_source import normalise_python
from warpsmith.ownership import owner_mark
from warpsmith.packages import install_command

if TYPE_CHECKING:
    import torch

ARCHITECTURES = {"sm_80": "sm_80", "sm_89": "sm_89", "sm_90a": "sm_90a", "sm_100": "sm_100a"}
"""Architectures that kernels are compiled for, with CuTe DSL's name for each."""


class CuteDsl(CompileOnly):
    """The language `cutedsl`."""

    name = "cutedsl"
    title = "CuTe DSL"
    aliases = ("cute", "cutlassdsl")
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("sm_80+",)
    control = "layouts, bulk copies and roles of warps by hand"
    product = "a CuTe DSL kernel (GEMM from sm_100 on)"
    preference = 2
    source_patterns = (
        SourcePattern((".py",), r"^\s*import\s+cutlass\.cute\b|^\s*from\s+cutlass(\.cute)?\s+import\b"),
    )
    packages = ("nvidia-cutlass-dsl", "apache-tvm-ffi")
    compiler = "warpsmith.languages.cutedsl.compile"
    compiled_architectures = tuple(ARCHITECTURES)
    seconds = 180.0

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing. There is no interpreter for a CPU."""
        if lack := missing_packages():
            return lack
        if target_kind == "cpu":
            return "CuTe DSL has no interpreter: without a GPU it compiles (`warpsmith assembly`), nothing more."
        if not has_cuda_device():
            return "No CUDA device: `warpsmith assembly` compiles CuTe DSL's kernels here, nothing judges them."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why a result without a GPU proves nothing at this workload: there is no interpreter."""
        return "CuTe DSL has no interpreter: only a GPU tells if a kernel is correct."

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""
        return cutedsl_source.cutedsl_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without comments, docstrings and layout."""
        return normalise_python(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return cutedsl_source.lint_cutedsl(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return check_python_file(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`. Compiled functions go to `build.cache`, or in a judgement to `resources`."""
        # A stamp holds the table's address in this process, so such a file is compiled anew.
        if build.cache is not None and not stamps.stores_stamps(build.artifact.read_text(encoding="utf-8")):
            from warpsmith.languages.cutedsl import function_cache

            cached: Run = function_cache.execute_cached(build.artifact, build.cache / "cutedsl").run
            return cached
        import tempfile

        from warpsmith.languages.cutedsl import calls as cutedsl_calls

        # Read when cutlass is imported. Without the binary nothing is known of a compiled kernel.
        os.environ |= {
            "CUTE_DSL_KEEP": "cubin,ptx",
            "CUTE_DSL_DUMP_DIR": tempfile.mkdtemp(prefix=f"warpsmith-cutedsl-{owner_mark()}-"),
        }
        cutedsl_calls.record_compiled_functions()
        run: Run = execute_file(build.artifact).run
        return run

    def with_stamps(self, source: str) -> str:
        """Return the file with its stamps turned into code that stores them."""
        return stamps.python_with_stamps(source, "warpsmith.languages.cutedsl.stamp_store", "store_cutedsl_stamp")

    def stamp_rows(self, build: Build) -> torch.Tensor:
        """Return the table of the stamps of all versions here, int64 of (rows, phases, 3); in a worker only."""
        return stamp_table.stamp_table()

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make calls of compiled functions do nothing within the context; in the worker process only."""
        from warpsmith.languages.cutedsl import calls as cutedsl_calls

        with cutedsl_calls.replaced_calls(lambda _: None):
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return the driver's report of every kernel that was compiled; nothing before the first call."""
        if "cutlass" not in sys.modules:
            return ()
        from warpsmith.languages.cutedsl import calls as cutedsl_calls
        from warpsmith.languages.cutedsl import report as cutedsl_report

        names = list(getattr(run, "__globals__", {}))
        functions = cutedsl_calls.compiled_functions()
        reports = (report for function in functions for report in cutedsl_report.driver_reports(function, names))
        return tuple(dict.fromkeys(reports))

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling and disassembling need and this machine lacks; None: nothing."""
        return missing_packages() or missing_triton()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process; CuTe DSL reads them once."""
        return {
            "CUTE_DSL_ARCH": ARCHITECTURES[arch],
            "CUTE_DSL_CACHE_DIR": str(folder / "cache"),
            "CUTE_DSL_DUMP_DIR": str(folder / "dump"),
            "CUTE_DSL_KEEP": "cubin,ptx",
            "CUTE_DSL_LINEINFO": "1",
            "PYTHONWARNINGS": "ignore",  # it warns that it does not cache what it dumps
        }


LANGUAGE = CuteDsl()


def _install() -> str:
    return install_command("lab", "triton", "cute")


def missing_packages() -> str | None:
    """Name in one sentence the packages that are missing, found without importing them; None: nothing."""
    packages = {"torch": "torch", "cutlass": "nvidia-cutlass-dsl", "tvm_ffi": "apache-tvm-ffi"}
    absent = [package for module, package in packages.items() if find_spec(module) is None]
    if absent:
        return f"{' and '.join(absent)} cannot be imported: run `{_install()}`."
    spec = find_spec("cutlass")
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    if not any(library for root in roots for library in root.glob("_mlir/_mlir_libs/_cutlass_ir.cu13*")):
        return f"CuTe DSL is installed without its libraries for CUDA 13: run `{_install()}`."
    return None
