"""CuTe DSL: one file with `run(...)`, its `@cute.kernel`s and what compiles them. There is no interpreter."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.languages import cutedsl_source, tool, triton, triton_source
from warpsmith.languages.base import Build, BuildFailed, Language, Listing, Run

ARCHITECTURES = {"sm_80": "sm_80", "sm_89": "sm_89", "sm_90a": "sm_90a", "sm_100": "sm_100a"}
"""What `inspect` compiles for, with the name that CuTe DSL has for it."""

_SECONDS = 180.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_INSTALL = "pip install 'warpsmith[lab,triton,cute]'"


class CuteDsl:
    """The language `cutedsl`."""

    name = "cutedsl"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready. Without a GPU kernels can only be compiled."""
        if lacking := _uninstalled():
            return lacking
        if target_kind == "cpu":
            return "CuTe DSL has no interpreter: without a GPU it compiles (`warpsmith assembly`), nothing more."
        if not triton._has_device():
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
        return triton.LANGUAGE.build(source, definition, folder)

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only; what it compiles is kept for `resources`."""
        import tempfile

        from warpsmith.languages import cutedsl_calls

        # Read when cutlass is imported. Without the binary nothing is known of a compiled kernel.
        os.environ |= {
            "CUTE_DSL_KEEP": "cubin,ptx",
            "CUTE_DSL_DUMP_DIR": tempfile.mkdtemp(prefix="warpsmith-cutedsl-"),
        }
        cutedsl_calls.listen()
        run: Run = triton.execute(build.artifact).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, calls of compiled functions do nothing; in the worker process only."""
        from warpsmith.languages import cutedsl_calls

        with cutedsl_calls.answered(lambda _: None):
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that was compiled; nothing before the first call."""
        if "cutlass" not in sys.modules:
            return ()
        from warpsmith.languages import cutedsl_calls, cutedsl_report

        known = list(getattr(run, "__globals__", {}))
        found = (one for made in cutedsl_calls.made() for one in cutedsl_report.loaded(made, known))
        return tuple(dict.fromkeys(found))

    def inspect(self, source: Path, definition: Definition, arch: str) -> tuple[Resources, ...]:
        """Compile what `run` calls at the first representative workload; no device is needed.

        Raises:
            BuildFailed: `run` or a kernel fails, nothing compiled is called, or it takes more than three minutes.
            MachineLacks: CuTe DSL, or Triton with its disassembler, is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import tempfile

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
            return _compile_only(source, definition, definition.select("representative")[:1], arch, Path(folder))

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
        """PTX and SASS of every kernel that `run` launches at these workloads; no device is needed.

        They are written as `<kernel>.<arch>.ptx` and `.sass`; those of an earlier call go.

        Raises:
            BuildFailed: `run` or a kernel fails, nothing compiled is called, or it takes more than three minutes.
            MachineLacks: CuTe DSL, or Triton with its disassembler, is missing.
            Misuse: `arch` is not of `ARCHITECTURES`.
        """
        import json
        import tempfile

        from warpsmith import files

        with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
            made = Path(temporary)
            reports = _compile_only(source, definition, workloads, arch, made)
            launches = json.loads((made / "launches.json").read_text())
            texts = sorted(path for path in made.iterdir() if path.suffix in (".ptx", ".sass"))
            for path in texts:
                files.write(folder / path.name, path.read_bytes())
        kept = {path.name for path in texts}
        for suffix in ("ptx", "sass"):
            for path in folder.glob(f"*.{arch}.{suffix}"):
                if path.name not in kept:
                    path.unlink()
        return tuple(_listing(launch, report, folder) for launch, report in zip(launches, reports, strict=True))


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


def _unknown(arch: str) -> Misuse:
    return Misuse(
        f"`{arch}` is no architecture that CuTe DSL kernels are inspected for: {', '.join(ARCHITECTURES)}."
    )


def _listing(launch: dict[str, Any], report: Resources, folder: Path) -> Listing:
    return Listing(
        kernel=report.kernel,
        workloads=tuple(launch["workloads"]),
        variant=launch["variant"],
        isa="sass",
        assembly=folder / f"{launch['stem']}.sass",
        resources=report,
        ptx=folder / f"{launch['stem']}.ptx",
        matrix_product=launch["matrix_product"],
    )


def _compile_only(
    source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
) -> tuple[Resources, ...]:
    """In a process of its own: CuTe DSL reads its environment once, and it can be killed."""
    import json

    if arch not in ARCHITECTURES:
        raise _unknown(arch)
    if lacking := _uninstalled() or triton.LANGUAGE.missing("cpu"):
        raise MachineLacks(lacking)
    LANGUAGE.build(source, definition, folder)
    request = {
        "source": str(source.resolve()),
        "definition": definition.model_dump(mode="json"),
        "arch": arch,
        "workloads": [workload.name for workload in workloads],
    }
    (folder / "request.json").write_text(json.dumps(request))
    (folder / "kept").mkdir()
    environment = {
        "CUDA_VISIBLE_DEVICES": "",
        "CUTE_DSL_ARCH": ARCHITECTURES[arch],
        "CUTE_DSL_CACHE_DIR": str(folder / "cache"),
        "CUTE_DSL_DUMP_DIR": str(folder / "kept"),
        "CUTE_DSL_KEEP": "cubin,ptx",
        "CUTE_DSL_LINEINFO": "1",
        "PYTHONWARNINGS": "ignore",  # it warns that what is kept is not cached
    }
    command = [sys.executable, "-P", "-m", "warpsmith.languages.cutedsl_compile", str(folder)]
    try:
        ended = tool.run(command, _SECONDS, environment=environment)
    except TimeoutError as error:
        raise BuildFailed(f"{source.name} was not compiled for {arch}: {error}.") from error
    lacks = folder / "lacks.txt"
    if lacks.is_file():
        raise MachineLacks(lacks.read_text())
    if ended.code != 0:
        said = [line for line in _COLOURS.sub("", ended.output).splitlines() if line.strip()]
        raise BuildFailed(f"{source.name} does not compile for {arch}.\n{tool.fenced(said[-8:])}")
    found = json.loads((folder / "resources.json").read_text())
    return tuple(Resources.model_validate(resource) for resource in found)
